#include "faults/fault.h"

#include <algorithm>
#include <string>

#include "base/rng.h"

namespace tailward::faults {
namespace {

using diag::Cause;
using std::chrono::microseconds;
using std::chrono::milliseconds;

std::size_t drawn_bytes(Rng& rng, std::size_t low, std::size_t high) {
  return static_cast<std::size_t>(rng.uniform(static_cast<double>(low), static_cast<double>(high)));
}

Duration drawn(Rng& rng, Duration low, Duration high) {
  return Duration{static_cast<std::int64_t>(
      rng.uniform(static_cast<double>(low.count()), static_cast<double>(high.count())))};
}

std::string known_names() {
  std::string names;
  for (const ServerFault& fault : server_faults()) {
    names += (names.empty() ? "" : ", ") + std::string(to_string(fault.cause));
  }
  return names;
}

// Causes that need large uploads to show: the receiver's window or its reading holds them back.
bool is_upload(Cause cause) {
  return cause == Cause::kSmallReceiveWindow || cause == Cause::kSlowReader;
}

}  // namespace

const std::vector<ServerFault>& server_faults() {
  static const std::vector<ServerFault> all{
      {Cause::kNone, "healthy: some requests take long, in the program itself", false},
      {Cause::kNagleDelayedAck, "head and body of a response in two writes, TCP_NODELAY off",
       false},
      {Cause::kSmallWrites, "a response in 64-byte writes, one segment each", false},
      {Cause::kCorked, "TCP_CORK set before a response, and forgotten", false},
      {Cause::kSmallSendBuffer, "SO_SNDBUF pinned small, responses of some hundred KiB", true},
      {Cause::kSmallReceiveWindow, "SO_RCVBUF pinned small, uploads of some hundred KiB", true},
      {Cause::kPacketLoss, "the network loses packets", true},
      {Cause::kSynLoss, "the network loses packets of the handshake", true},
      {Cause::kListenOverflow, "a short accept queue, clients that come in bursts", false},
      {Cause::kSlowAccept, "an acceptor with other things to do", false},
      {Cause::kSlowReader, "uploads that are read slowly", false},
  };
  return all;
}

Result<ServerFault> find_fault(std::string_view name) {
  for (const ServerFault& fault : server_faults()) {
    if (to_string(fault.cause) == name) return fault;
  }
  return fail(ErrorKind::kInvalid, "there is no fault '" + std::string(name) + "'",
              "one of: " + known_names());
}

FaultModel draw_fault_model(const ServerFault& fault, std::uint64_t seed, double severity) {
  Rng rng = Rng::stream(seed, static_cast<std::uint64_t>(fault.cause));
  FaultModel model;
  model.cause = fault.cause;
  model.seed = seed;
  model.severity = severity;
  model.over_link = fault.needs_link || rng.chance(0.5);
  model.processing = drawn(rng, microseconds(500), milliseconds(4));
  model.response_bytes = drawn_bytes(rng, 200, 1200);
  // A window or a buffer costs one round trip each time it is full: without round-trip time the
  // fault would not show.
  const bool bulk = is_upload(model.cause) || model.cause == Cause::kSmallSendBuffer;
  model.link.delay = bulk ? drawn(rng, milliseconds(3), milliseconds(10))
                          : drawn(rng, microseconds(200), milliseconds(3));
  // The fault hits all requests, or only those that take one path through the program.
  model.faulty_share = rng.chance(0.5) ? 1 : rng.uniform(0.1, 0.6);
  switch (model.cause) {
    case Cause::kSmallWrites:
      model.response_bytes = drawn_bytes(rng, 32'000, 96'000);
      // The fault costs a few milliseconds. If the processing took longer, that would be the cause.
      model.processing = drawn(rng, microseconds(300), milliseconds(1));
      break;
    case Cause::kCorked:
      // With full segments in front of the one that is held, or without.
      if (rng.chance(0.5)) model.response_bytes = drawn_bytes(rng, 3'000, 20'000);
      break;
    case Cause::kSmallSendBuffer:
      model.response_bytes = drawn_bytes(rng, 600'000, 1'500'000);
      break;
    case Cause::kSmallReceiveWindow:
      model.upload_bytes = drawn_bytes(rng, 128'000, 400'000);
      break;
    case Cause::kSlowReader:
      model.upload_bytes = drawn_bytes(rng, 1'000'000, 3'000'000);
      break;
    case Cause::kPacketLoss:
      if (rng.chance(0.5)) model.response_bytes = drawn_bytes(rng, 5'000, 60'000);
      model.link.loss = std::min(0.3, rng.uniform(0.02, 0.05) * severity);
      break;
    case Cause::kSynLoss:
      model.link.syn_loss = std::min(0.9, rng.uniform(0.1, 0.25) * severity);
      break;
    case Cause::kNone:
      if (rng.chance(0.3)) model.response_bytes = drawn_bytes(rng, 5'000, 200'000);
      if (rng.chance(0.3)) model.upload_bytes = drawn_bytes(rng, 1'000, 100'000);
      break;
    default:
      break;
  }
  return model;
}

}  // namespace tailward::faults
