// One transfer in one direction, written in messages: what `nodelay-batch` and `buffers` measure.
//
// Thread safety: one thread; the reader runs on a thread of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "lab/tcp/arm.h"
#include "lab/tcp/place.h"
#include "lab/tcp/run.h"
#include "net/blocking_socket.h"

namespace tailward::lab {

struct TransferPlan {
  std::size_t message = 0;  // bytes
  std::uint64_t messages_max = 0;
  Duration at_most{};
  net::BlockingOptions options = {};
  // Both buffers of both ends, bytes. Set after connecting, as programs mostly do, and as Go's
  // SetWriteBuffer must. Empty: the kernel's own.
  std::optional<int> buffers = {};
};

struct Transfer {
  Duration took{};  // from the first write until the last byte was read
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;
  std::optional<double> steady_mb_per_s;  // from kSteadyFrom on
  Duration smoothed_rtt{};
  int send_buffer = 0;
  int receive_buffer = 0;
  TcpCounts counts;  // if `counted`
};

// On a new connection. `counted`: its packets are counted, which costs time. Errors: those of the
// sockets.
Result<Transfer> run_transfer(TcpPlace& place, const TransferPlan& plan, TcpRun& run, bool counted);

// Adds a timed transfer to its arm.
void record(const Transfer& transfer, TcpArm& arm);

}  // namespace tailward::lab
