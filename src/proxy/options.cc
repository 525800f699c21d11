#include "proxy/options.h"

#include <fmt/format.h>

#include "hedge/engine/hosts.h"

namespace tailward::proxy {

Result<std::vector<io::Endpoint>> parse_hosts(std::string_view text) {
  std::vector<io::Endpoint> hosts;
  while (true) {
    const std::size_t comma = text.find(',');
    Result<io::Endpoint> host = io::parse_endpoint(text.substr(0, comma));
    if (!host) return fail(std::move(host).error());
    if (host->host.empty()) host->host = "127.0.0.1";
    if (host->port == 0) {
      return fail(ErrorKind::kInvalid,
                  fmt::format("\"{}\": port 0 cannot be connected to", io::to_string(*host)),
                  "name the port that the server listens on");
    }
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

std::string summary(const Options& options, const io::Endpoint& listening,
                    const std::optional<io::Endpoint>& admin) {
  std::string hosts;
  for (const io::Endpoint& host : options.to) {
    if (!hosts.empty()) hosts += ", ";
    hosts += io::to_string(host);
  }
  return fmt::format("listening on {}, to {}; policy {}, budget {}, admin {}",
                     io::to_string(listening), hosts, hedge::to_string(options.policy),
                     share_text(options.budget), admin ? io::to_string(*admin) : "off");
}

}  // namespace tailward::proxy
