// The proxy's admin address: /healthz, /readyz, /stats, /config and /metrics.
//
// What is not known is null, never zero; percentiles say from how many samples they come.
//
// Thread safety: belongs to the proxy's loop.
#pragma once

#include <string>

#include "net/http_server.h"
#include "proxy/proxy.h"
#include "report/json.h"

namespace tailward::proxy {

void answer_admin(Proxy& proxy, net::ServerCall& call);

report::Json stats_json(Proxy& proxy);
report::Json config_json(const Proxy& proxy);
// Prometheus text format, version 0.0.4.
std::string metrics_text(Proxy& proxy);

}  // namespace tailward::proxy
