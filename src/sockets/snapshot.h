// The sockets of one or more processes at one moment, with the remarks they deserve and, after a
// second look, what they did in between.
//
// Thread safety: plain values and pure functions; look() asks the system.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "diag/socket_remarks.h"
#include "probe/sockets.h"
#include "tcp/socket_facts.h"

namespace tailward::sockets {

// A process whose sockets were asked for, or that holds one of the port's.
struct ProcessInfo {
  int pid = 0;
  std::string name;
  tcp::Runtime runtime = tcp::Runtime::kUnknown;
};

// Per second, between two looks.
struct Rates {
  double sent_bytes = 0;
  double received_bytes = 0;
  double segments_out = 0;
  double segments_in = 0;
  double retransmits = 0;
  double rwnd_limited = 0;  // share of the time
};

// One descriptor. A socket that several processes share occurs once for each of them.
struct Socket {
  tcp::SocketFacts facts;
  std::vector<diag::SocketRemark> remarks = {};  // worst first
  std::optional<Rates> rates = {};               // empty: the socket is new, or there was one look
};

struct Snapshot {
  std::vector<ProcessInfo> processes = {};
  std::vector<Socket> sockets = {};
  // Not TCP; closed between the listing and the look; and those whose options could not be read for
  // want of a privilege.
  std::uint64_t unix_sockets = 0, other_sockets = 0, vanished = 0, denied = 0;
  std::optional<Error> why_denied = {};
  std::optional<Duration> apart = {};  // between the two looks
};

// Errors: as those of probe::list_sockets().
Result<Snapshot> look(const probe::SocketSearch& search);

// Pure: what look() makes of the responses of the system.
Snapshot judge(probe::SocketList list, std::vector<ProcessInfo> processes);

// Adds rates to `now`, and judges by what happened since `earlier` instead of the whole life.
void compare(Snapshot& now, const Snapshot& earlier, Duration apart);

// Whether the peer has called this process, and not the other way round: by the listeners of the
// snapshot, or by the ports where it has none.
class Directions {
 public:
  explicit Directions(const Snapshot& snapshot);
  // True when the peer called us. Exact with a listener in the snapshot; else the side with an
  // ephemeral port (32768 and up, Linux's default) is taken for the caller.
  [[nodiscard]] bool inbound(const tcp::SocketFacts& facts) const;
  [[nodiscard]] std::size_t services() const { return listening_.size(); }  // ports listened on

 private:
  std::vector<std::uint16_t> listening_;
};

// Listeners have no peer, no RTT and no rates.
bool is_listener(const Socket& socket);

// How often each state and each remark occurs.
struct SocketCounts {
  std::map<std::string_view, std::uint64_t> states;
  std::map<std::string_view, std::uint64_t> remarks;
};
SocketCounts count(const Snapshot& snapshot);

}  // namespace tailward::sockets
