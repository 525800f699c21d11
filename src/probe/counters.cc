#include "probe/counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "probe/proc_files.h"
#include "probe/sockets.h"

namespace tailward::probe {
namespace {

struct Named {
  std::string_view table;
  std::string_view name;
  std::uint64_t tcp::HostCounters::*counter;
};
constexpr Named kCounters[] = {
    {"TcpExt:", "ListenOverflows", &tcp::HostCounters::listen_overflows},
    {"TcpExt:", "ListenDrops", &tcp::HostCounters::listen_drops},
    {"TcpExt:", "DelayedACKs", &tcp::HostCounters::delayed_acks},
    {"TcpExt:", "TCPTimeouts", &tcp::HostCounters::tcp_timeouts},
    {"TcpExt:", "TCPLossProbes", &tcp::HostCounters::loss_probes},
    {"TcpExt:", "TCPSynRetrans", &tcp::HostCounters::syn_retrans},
    {"TcpExt:", "TCPRcvQDrop", &tcp::HostCounters::rcv_q_drop},
    {"TcpExt:", "TCPToZeroWindowAdv", &tcp::HostCounters::to_zero_window},
    {"TcpExt:", "TCPFromZeroWindowAdv", &tcp::HostCounters::from_zero_window},
    {"TcpExt:", "TCPWantZeroWindowAdv", &tcp::HostCounters::want_zero_window},
    {"Tcp:", "RetransSegs", &tcp::HostCounters::retrans_segs},
};

// Takes the next word off a line.
std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace

void parse_counters(std::string_view text, tcp::HostCounters& counters) {
  while (!text.empty()) {
    std::string_view names = next_line(text);
    std::string_view values = next_line(text);
    const std::string_view table = next_word(names);
    if (next_word(values) != table) return;
    while (true) {
      const std::string_view name = next_word(names);
      const std::string_view value = next_word(values);
      if (name.empty() || value.empty()) break;
      for (const Named& known : kCounters) {
        if (known.table != table || known.name != name) continue;
        std::from_chars(value.data(), value.data() + value.size(), counters.*known.counter);
      }
    }
  }
}

Result<tcp::HostCounters> read_counters() {
  tcp::HostCounters counters;
  // Of the thread, which may be in another network namespace than its process.
  for (const char* name : {"netstat", "snmp"}) {
    const std::string path = fmt::format("/proc/thread-self/net/{}", name);
    const std::optional<std::string> text = read_small_file(path);
    if (!text) {
      return fail(ErrorKind::kUnsupported, fmt::format("cannot read {}", path),
                  "is /proc mounted?");
    }
    parse_counters(*text, counters);
  }
  return counters;
}

}  // namespace tailward::probe
