#include "proxy/options.h"

#include <fmt/format.h>

#include "client/client.h"
#include "hedge/engine/hosts.h"

namespace tailward::proxy {

Result<std::vector<io::HostPort>> parse_hosts(std::string_view text) {
  std::vector<io::HostPort> hosts;
  while (true) {
    const std::size_t comma = text.find(',');
    Result<io::HostPort> host = client::parse_host(text.substr(0, comma));
    if (!host) return fail(std::move(host).error());
    if (hosts.size() == hedge::kHostsMax) {
      return fail(ErrorKind::kInvalid, fmt::format("more than {} servers", hedge::kHostsMax),
                  "put a proxy before each part of them");
    }
    hosts.push_back(std::move(*host));
    if (comma == std::string_view::npos) return hosts;
    text.remove_prefix(comma + 1);
  }
}

std::string share_text(double share) { return fmt::format("{:g}%", share * 100); }

std::string summary(const Options& options, const io::HostPort& listening,
                    const std::optional<io::HostPort>& admin) {
  std::string hosts;
  for (const io::HostPort& host : options.to) {
    if (!hosts.empty()) hosts += ", ";
    hosts += io::to_string(host);
  }
  return fmt::format("listening on {}, to {}; policy {}, budget {}, admin {}",
                     io::to_string(listening), hosts, hedge::to_string(options.policy),
                     share_text(options.budget), admin ? io::to_string(*admin) : "off");
}

}  // namespace tailward::proxy
