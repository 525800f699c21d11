// Counters of /proc/net. Internal to probe.
//
// Pure.
#pragma once

#include <string_view>

#include "tcp/host_counters.h"

namespace tailward::probe {

// Pairs of lines, names and values, as in /proc/net/netstat and /proc/net/snmp. Those that this
// kernel does not have stay as they are.
void parse_counters(std::string_view text, tcp::HostCounters& counters);

}  // namespace tailward::probe
