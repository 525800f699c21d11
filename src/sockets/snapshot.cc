#include "sockets/snapshot.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "probe/runtime.h"

namespace tailward::sockets {
namespace {

// Where the kernel takes the ports of callers from by default (ip_local_port_range).
constexpr std::uint16_t kFirstEphemeral = 32'768;

// The inode is part of it: a number that was closed and given out again is another socket.
using Key = std::tuple<int, int, std::uint32_t>;
Key key_of(const tcp::SocketFacts& facts) { return {facts.pid, facts.fd, facts.inode}; }

tcp::Runtime runtime_of(const Snapshot& snapshot, int pid) {
  for (const ProcessInfo& process : snapshot.processes) {
    if (process.pid == pid) return process.runtime;
  }
  return tcp::Runtime::kUnknown;
}

template <class T>
double per_second(std::optional<T> now, std::optional<T> before, Duration apart) {
  // A counter never falls; if it seems to, the kernel has left it out in one of the looks.
  if (!now || !before || *now <= *before || apart <= Duration{}) return 0;
  return static_cast<double>(*now - *before) / to_seconds(apart);
}

Rates rates_of(const tcp::TcpInfo& now, const tcp::TcpInfo& before, Duration apart) {
  constexpr double kUsPerSecond = 1e6;
  return {.sent_bytes = per_second(now.bytes_sent, before.bytes_sent, apart),
          .received_bytes = per_second(now.bytes_received, before.bytes_received, apart),
          .segments_out = per_second(now.segs_out, before.segs_out, apart),
          .segments_in = per_second(now.segs_in, before.segs_in, apart),
          .retransmits = per_second(now.total_retrans, before.total_retrans, apart),
          .rwnd_limited = std::min(
              1.0, per_second(now.rwnd_limited_us, before.rwnd_limited_us, apart) / kUsPerSecond)};
}

}  // namespace

Result<Snapshot> look(const probe::SocketSearch& search) {
  Result<probe::SocketList> list = probe::list_sockets(search);
  if (!list) return fail(list.error());
  std::vector<ProcessInfo> processes;
  for (const int pid : list->pids) {
    const Result<probe::Process> process = probe::Process::open(pid);
    // A process that has ended since is only missing its name and runtime.
    if (process) processes.push_back({pid, process->name(), probe::detect_runtime(pid)});
  }
  return judge(std::move(*list), std::move(processes));
}

Snapshot judge(probe::SocketList list, std::vector<ProcessInfo> processes) {
  Snapshot snapshot{.processes = std::move(processes),
                    .unix_sockets = list.unix_sockets,
                    .other_sockets = list.other_sockets,
                    .vanished = list.vanished,
                    .denied = list.denied,
                    .why_denied = std::move(list.why_denied)};
  snapshot.sockets.reserve(list.sockets.size());
  for (tcp::SocketFacts& facts : list.sockets) {
    auto remarks = diag::socket_remarks(facts, runtime_of(snapshot, facts.pid));
    snapshot.sockets.push_back({std::move(facts), std::move(remarks)});
  }
  return snapshot;
}

void compare(Snapshot& now, const Snapshot& earlier, Duration apart) {
  std::map<Key, const tcp::SocketFacts*> before;
  for (const Socket& socket : earlier.sockets) before[key_of(socket.facts)] = &socket.facts;
  for (Socket& socket : now.sockets) {
    const auto found = before.find(key_of(socket.facts));
    if (found == before.end()) continue;
    socket.rates = rates_of(socket.facts.tcp, found->second->tcp, apart);
    socket.remarks =
        diag::socket_remarks(socket.facts, runtime_of(now, socket.facts.pid), found->second, apart);
  }
  now.apart = apart;
}

bool is_listener(const Socket& socket) { return socket.facts.state == tcp::TcpState::kListen; }

Directions::Directions(const Snapshot& snapshot) {
  for (const Socket& socket : snapshot.sockets) {
    if (is_listener(socket)) listening_.push_back(socket.facts.local.port);
  }
  std::sort(listening_.begin(), listening_.end());
  listening_.erase(std::unique(listening_.begin(), listening_.end()), listening_.end());
}

bool Directions::inbound(const tcp::SocketFacts& facts) const {
  if (std::binary_search(listening_.begin(), listening_.end(), facts.local.port)) return true;
  // Without a listener of our own (a worker that inherited its sockets): the side with the
  // ephemeral port has called.
  return facts.local.port < kFirstEphemeral && facts.remote.port >= kFirstEphemeral;
}

SocketCounts count(const Snapshot& snapshot) {
  SocketCounts counts;
  for (const Socket& socket : snapshot.sockets) {
    ++counts.states[tcp::to_string(socket.facts.state)];
    for (const diag::SocketRemark& remark : socket.remarks) ++counts.remarks[remark.code];
  }
  return counts;
}

}  // namespace tailward::sockets
