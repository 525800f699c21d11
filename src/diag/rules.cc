#include "diag/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "diag/facts.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

std::string side(bool client) { return client ? "client" : "server"; }

// "the server 10.0.0.1:80", "the clients of 10.0.0.1:80"
std::string who(const StallPattern& pattern) {
  return pattern.sender_is_client ? "the client of " + to_string(pattern.server)
                                  : "the server " + to_string(pattern.server);
}
std::string peer_of(const StallPattern& pattern) {
  return "the " + side(!pattern.sender_is_client);
}

std::string times(std::uint64_t count) {
  return count == 1 ? "once" : format_count(count) + " times";
}

std::string bytes(std::uint64_t count) {
  return format_count(count) + (count == 1 ? " byte" : " bytes");
}

void show(Finding& finding, std::string text, std::vector<std::uint64_t> packets = {}) {
  finding.evidence.push_back({std::move(text), std::move(packets)});
}

// How often, how long, and where else.
void show_extent(Finding& finding, const Recurrence& seen) {
  const StallPattern& worst = seen.worst();
  show(finding,
       fmt::format("{} on {} connection(s), {} each (10 % to 90 %: {} to {}), {} in all",
                   times(seen.count), format_count(seen.connections),
                   format_duration(worst.length.median), format_duration(worst.length.low),
                   format_duration(worst.length.high), format_duration(seen.total)),
       worst.packets);
  for (std::size_t i = 1; i < std::min<std::size_t>(seen.patterns.size(), 4); ++i) {
    const StallPattern& other = *seen.patterns[i];
    show(finding,
         fmt::format("also where {} sends: {}, {}", who(other), times(other.count),
                     format_duration(other.total)),
         other.packets);
  }
}

// A capture that began in the middle does not tell how windows are scaled.
Certainty window_certainty(const StallPattern& worst, Finding* finding) {
  if (worst.window_known) return Certainty::kConsistent;
  if (finding != nullptr) {
    finding->missing.emplace_back(
        "the beginning of the connections: without their SYNs the scale of the windows is unknown");
  }
  return Certainty::kGuessed;
}

// Where the round trip is not known, an ACK lets a segment go if the time from the ACK varies less
// than the time from the piece before: a program that has timing of its own keeps the latter.
bool follows_acks(const StallPattern& pattern) {
  const Duration from_ack = pattern.gap.high - pattern.gap.low;
  const Duration from_piece = pattern.length.high - pattern.length.low;
  return pattern.count >= thresholds.recurrence.recurs && from_ack * 3 / 2 < from_piece;
}

}  // namespace

Finding found(Cause cause, Certainty certainty, std::string sentence) {
  Finding finding;
  finding.layer = findings::Layer::kCause;
  finding.cause = cause;
  finding.certainty = certainty;
  finding.sentence = std::move(sentence);
  return finding;
}

std::optional<Recurrence> recurrence(const NetworkEvidence& evidence, Kinds which) {
  Recurrence all;
  if (evidence.packets == nullptr) return {};
  for (const StallPattern& pattern : evidence.packets->patterns) {
    if ((which & kinds(pattern.kind)) == 0) continue;
    all.patterns.push_back(&pattern);
    all.count += pattern.count;
    all.counterexamples += pattern.counterexamples;
    all.connections += pattern.connections;
    all.after_full += pattern.after_full;
    all.first_data += pattern.first_data;
    all.timeouts += pattern.timeouts;
    all.probes += pattern.probes;
    all.fast += pattern.fast;
    all.spurious += pattern.spurious;
    all.total += pattern.total;
  }
  if (all.count == 0) return {};
  std::stable_sort(all.patterns.begin(), all.patterns.end(),
                   [](const auto* a, const auto* b) { return a->total > b->total; });
  return all;
}

Judgement judge_nagle(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts holder = facts_of(evidence, worst.server, worst.sender_is_client);
  if (holder.nodelay.yes > 0 && holder.nodelay.no == 0) return {};  // Nagle is off there
  if (worst.counterexamples * 2 > worst.count) return {};           // the application's own timing
  if (worst.rtt_only_bounded * 2 > worst.count && !follows_acks(worst)) return {};
  Certainty certainty = Certainty::kGuessed;
  if (worst.count >= thresholds.recurrence.recurs &&
      worst.counterexamples * thresholds.recurrence.counterexamples_per_hit <= worst.count) {
    certainty = Certainty::kConsistent;
  }
  if (holder.nodelay.no > 0) certainty = Certainty::kProven;
  Finding finding = found(
      Cause::kNagleDelayedAck, certainty,
      fmt::format("{} holds back the rest of a message (Nagle) until {} acknowledges the piece "
                  "before, and {} delays that acknowledgement: {} lost each time, {}",
                  who(worst), peer_of(worst), peer_of(worst), format_duration(worst.length.median),
                  times(worst.count)));
  show(finding,
       fmt::format("a piece of {} was sent, the next of {} left only {} after the ACK",
                   bytes(worst.first_bytes), bytes(worst.second_bytes),
                   format_duration(worst.gap.median)),
       worst.packets);
  show(finding, fmt::format("the ACK came {} later than {} could have sent it (10 % to 90 %: {} to "
                            "{}), and with no data: a delayed one",
                            format_duration(worst.late.median), peer_of(worst),
                            format_duration(worst.late.low), format_duration(worst.late.high)));
  if (worst.counterexamples > 0) {
    show(finding, fmt::format("{} such segments left later than that after the ACK",
                              format_count(worst.counterexamples)));
  }
  if (holder.nodelay.no > 0) {
    show(finding, fmt::format("TCP_NODELAY is off on {} of {} sockets there (fd {} of process {})",
                              holder.nodelay.no, holder.nodelay.no + holder.nodelay.yes, holder.fd,
                              holder.pid));
  } else {
    finding.missing.push_back(fmt::format("TCP_NODELAY of the {}'s sockets: watch the process",
                                          side(worst.sender_is_client)));
  }
  if (seen.count < thresholds.recurrence.recurs)
    finding.missing.emplace_back("more of them: a longer capture");
  show_extent(finding, seen);
  return finding;
}

Judgement judge_small_writes(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts sender = facts_of(evidence, worst.server, worst.sender_is_client);
  // With Nagle on, segments are as large as the acknowledgements allow.
  if (sender.nodelay.no > 0 && sender.nodelay.yes == 0) return {};
  const double mean = static_cast<double>(worst.bytes) / static_cast<double>(worst.segments);
  const bool nodelay = sender.nodelay.yes > 0 && sender.nodelay.no == 0;
  Finding finding = found(
      Cause::kSmallWrites, nodelay ? Certainty::kProven : Certainty::kConsistent,
      fmt::format("{} streams in segments of {:.0f} bytes on average, one packet and one system "
                  "call for each: {:.1f} segments per KiB",
                  who(worst), mean, 1024 / mean));
  show(finding,
       fmt::format("{} in {} segments, {} apart, with no word from {} between them",
                   bytes(worst.bytes), format_count(worst.segments),
                   format_duration(worst.gap.median), peer_of(worst)),
       worst.packets);
  if (nodelay) {
    show(finding, fmt::format("TCP_NODELAY is on there (fd {} of process {}): every write becomes "
                              "a segment",
                              sender.fd, sender.pid));
  } else if (sender.nodelay.no == 0) {
    finding.missing.push_back(fmt::format("TCP_NODELAY of the {}'s sockets: watch the process",
                                          side(worst.sender_is_client)));
  }
  show_extent(finding, seen);
  return finding;
}

Judgement judge_cork(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts sender = facts_of(evidence, worst.server, worst.sender_is_client);
  const std::uint64_t alone = worst.count - worst.after_full;
  std::optional<Certainty> certainty;
  if (worst.after_full > 0) {
    certainty = worst.after_full >= thresholds.recurrence.recurs ? Certainty::kConsistent
                                                                 : Certainty::kGuessed;
  } else if (alone >= thresholds.recurrence.cork_recurs &&
             worst.counterexamples * thresholds.recurrence.counterexamples_per_hit <= alone &&
             worst.gap.low >= thresholds.cork.kernel_timer) {
    // The kernel's patience ends on a tick of its timers; an application's 200 ms end anywhere.
    if (worst.in_step_by_chance < thresholds.cork.by_chance_consistent) {
      certainty = Certainty::kConsistent;
    } else if (worst.in_step_by_chance < thresholds.cork.by_chance_guessed) {
      certainty = Certainty::kGuessed;
    }
  }
  if (sender.cork.yes > 0) {
    // Corks are set and cleared around messages by many a healthy server: it takes the packets,
    // too.
    const bool recurs =
        alone >= thresholds.recurrence.recurs &&
        worst.counterexamples * thresholds.recurrence.counterexamples_per_hit <= alone;
    if (certainty || recurs) certainty = Certainty::kProven;
  }
  if (!certainty) return {};
  Finding finding =
      found(Cause::kCorked, *certainty,
            fmt::format("{} leaves the end of its messages in a corked socket (TCP_CORK or "
                        "MSG_MORE), until the kernel gives up after 200 ms: {}",
                        who(worst), times(worst.count)));
  show(finding,
       fmt::format("a segment of {} left {} after the last thing that it can have waited for (10 % "
                   "to 90 %: {} to {}), nothing was outstanding, and it was sent once",
                   bytes(worst.second_bytes), format_duration(worst.gap.median),
                   format_duration(worst.gap.low), format_duration(worst.gap.high)),
       worst.packets);
  if (worst.after_full > 0) {
    show(finding, fmt::format("{} of them followed a full-sized segment of the same message",
                              format_count(worst.after_full)));
  } else {
    finding.missing.emplace_back(
        "messages longer than a segment: a program that waits 200 ms by "
        "itself looks much the same");
  }
  if (sender.cork.yes > 0) {
    show(finding, fmt::format("TCP_CORK was seen set on {} socket(s) there (fd {} of process {})",
                              sender.cork.yes, sender.fd, sender.pid));
  } else {
    finding.missing.push_back(fmt::format("TCP_CORK of the {}'s sockets: watch the process",
                                          side(worst.sender_is_client)));
  }
  show_extent(finding, seen);
  return finding;
}

Judgement judge_send_buffer(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts sender = facts_of(evidence, worst.server, worst.sender_is_client);
  if (sender.sndbuf_locked.no > 0 && sender.sndbuf_locked.yes == 0) return {};  // it would grow
  const bool proven = sender.sndbuf_locked.yes > 0 || sender.sndbuf_limited_us > 0;
  Finding finding = found(
      Cause::kSmallSendBuffer, proven ? Certainty::kProven : window_certainty(worst, nullptr),
      fmt::format("{} never has more than {} on their way, although {} would take {}: its send "
                  "buffer is too small for the path, and it waits for acknowledgements",
                  who(worst), bytes(worst.in_flight), peer_of(worst), bytes(worst.window_max)));
  show(finding,
       "round trip after round trip the same number of bytes, sent only when an ACK came, nothing "
       "lost: a congestion window would have grown",
       worst.packets);
  show(finding, fmt::format("a buffer of at least {}, twice what is in flight now, or none set at "
                            "all, would let it grow with bandwidth × round-trip time",
                            bytes(2ull * worst.in_flight)));
  if (sender.sndbuf_locked.yes > 0) {
    show(finding, fmt::format("SO_SNDBUF has been set by the program (fd {} of process {}): {}, "
                              "not tuned by the kernel any more",
                              sender.fd, sender.pid,
                              bytes(static_cast<std::uint64_t>(sender.sndbuf.value_or(0)))));
  }
  if (sender.sndbuf_limited_us > 0) {
    show(finding,
         fmt::format("TCP_INFO counts {} limited by the send buffer",
                     format_duration(std::chrono::microseconds(sender.sndbuf_limited_us))));
  }
  if (!proven) {
    finding.missing.push_back(
        fmt::format("SO_SNDBUF and TCP_INFO of the {}'s sockets: watch the "
                    "process",
                    side(worst.sender_is_client)));
  }
  if (!worst.window_known) window_certainty(worst, &finding);
  show_extent(finding, seen);
  return finding;
}

Judgement judge_receive_window(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts receiver = facts_of(evidence, worst.server, !worst.sender_is_client);
  Finding finding = found(
      Cause::kSmallReceiveWindow, Certainty::kConsistent,
      fmt::format("{} fills the window of {}, which is small (never more than {}), and waits for "
                  "it to open: {}",
                  who(worst), peer_of(worst), bytes(worst.window_max), times(worst.count)));
  finding.certainty = window_certainty(worst, &finding);
  if (worst.probes > 0) {
    show(finding, fmt::format("the window was shut so long that the sender asked: {} probes",
                              format_count(worst.probes)));
  }
  if (receiver.rcvbuf_locked.yes > 0) {
    finding.certainty = Certainty::kProven;
    show(finding, fmt::format("SO_RCVBUF has been set by the program (fd {} of process {}): {}, "
                              "not tuned by the kernel any more",
                              receiver.fd, receiver.pid,
                              bytes(static_cast<std::uint64_t>(receiver.rcvbuf.value_or(0)))));
  } else {
    finding.missing.push_back(fmt::format("SO_RCVBUF of the {}'s sockets: watch the process",
                                          side(!worst.sender_is_client)));
  }
  const SideFacts sender = facts_of(evidence, worst.server, worst.sender_is_client);
  if (sender.rwnd_limited_us > 0) {
    show(finding, fmt::format("TCP_INFO counts {} limited by the receive window",
                              format_duration(std::chrono::microseconds(sender.rwnd_limited_us))));
  }
  show_extent(finding, seen);
  return finding;
}

Judgement judge_slow_reader(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const SideFacts receiver = facts_of(evidence, worst.server, !worst.sender_is_client);
  Finding finding = found(
      Cause::kSlowReader, Certainty::kConsistent,
      fmt::format("{} does not read as fast as data come: its receive buffer fills up, and {} has "
                  "to wait for it, {} in all",
                  peer_of(worst), who(worst), format_duration(worst.total)));
  show(finding,
       worst.window_max > 0
           ? fmt::format(
                 "the window had been up to {}: unread data took more than half of it, or all",
                 bytes(worst.window_max))
           : std::string("unread data took more than half of the window, or all"),
       worst.packets);
  if (worst.probes > 0) {
    show(finding, fmt::format("the sender asked {} whether it had opened", times(worst.probes)));
  }
  if (receiver.recv_queue_max >= std::max(thresholds.recurrence.unread_min, worst.window_max / 4)) {
    finding.certainty = Certainty::kProven;
    show(finding, fmt::format("{} lie unread in a socket there (fd {} of process {})",
                              bytes(receiver.recv_queue_max), receiver.fd, receiver.pid));
  } else {
    finding.missing.push_back(
        fmt::format("the {}'s receive queue, and what its reading thread "
                    "does meanwhile",
                    side(!worst.sender_is_client)));
  }
  show_extent(finding, seen);
  return finding;
}

// A network does not choose what it loses. A host whose queue of connections is full does: the last
// ACK of the handshake, and the data behind it.
bool loses_only_beginnings(const Recurrence& seen, const NetworkEvidence& evidence) {
  const auto* listener = listener_of(evidence, seen.worst().server);
  const bool room = listener != nullptr &&
                    listener->looks >= thresholds.recurrence.listener_looks_min &&
                    listener->looks_full == 0;
  if (room && evidence.counters && evidence.counters->listen_overflows == 0) return false;
  return seen.first_data >= thresholds.recurrence.first_data_recurs &&
         seen.first_data * 10 >= seen.count * 9;
}

Finding lost_beginnings(const Recurrence& seen) {
  const StallPattern& worst = seen.worst();
  Finding finding = found(
      Cause::kListenOverflow, Certainty::kConsistent,
      fmt::format("{} drops new connections: the first data on them has to be sent again, {}, and "
                  "hardly anything else is lost, as when its queue of connections is full",
                  to_string(worst.server), times(seen.count)));
  show(finding,
       fmt::format("{} of {} retransmissions are of the first data after a handshake",
                   format_count(seen.first_data), format_count(seen.count)),
       worst.packets);
  finding.missing.emplace_back("the server's counters (ListenOverflows) and its listener's queue");
  show_extent(finding, seen);
  return finding;
}

Judgement judge_loss(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  if (loses_only_beginnings(seen, evidence)) return lost_beginnings(seen);
  const bool needless = seen.spurious * 2 > seen.timeouts + seen.probes + seen.fast;
  Finding finding =
      found(Cause::kPacketLoss, needless ? Certainty::kGuessed : Certainty::kProven,
            fmt::format("packets are lost: what {} sent had to be sent again, {}, up to {} for one",
                        who(worst), times(seen.count), format_duration(worst.longest)));
  show(finding,
       fmt::format("sent again: {} after a timeout (RTO), {} as a probe for a lost tail or soon "
                   "after, {} after duplicate ACKs or SACKs",
                   times(seen.timeouts), times(seen.probes), times(seen.fast)),
       worst.packets);
  if (seen.spurious > 0) {
    show(finding, fmt::format("{} were needless: the receiver says that it had the data (D-SACK)",
                              format_count(seen.spurious)));
  }
  if (evidence.packets_lost > 0) {
    finding.missing.push_back(fmt::format("{} packets that the capture itself lost",
                                          format_count(evidence.packets_lost)));
  }
  if (evidence.counters && evidence.counters->retrans_segs > 0) {
    show(finding, fmt::format("this host sent {} segments again meanwhile, {} after a timeout",
                              format_count(evidence.counters->retrans_segs),
                              format_count(evidence.counters->tcp_timeouts)));
  }
  finding.missing.emplace_back("where they are lost: a capture at the other end, or drop counters");
  show_extent(finding, seen);
  return finding;
}

Judgement judge_first_turn(const Recurrence& seen, const NetworkEvidence& evidence) {
  const StallPattern& worst = seen.worst();
  const std::uint64_t compared = worst.connections + worst.counterexamples;
  const auto* listener = listener_of(evidence, worst.server);
  const bool waiting = listener != nullptr && listener->looks_waiting > 0;
  if (listener != nullptr && listener->looks >= thresholds.recurrence.listener_looks_min &&
      !waiting)
    return {};  // nobody waited there
  if (worst.connections < thresholds.recurrence.recurs ||
      worst.connections * thresholds.recurrence.first_turn_share_inverse < compared)
    return {};
  const bool most = worst.connections >= thresholds.recurrence.first_turn_most &&
                    worst.connections * 2 >= compared;
  Finding finding = found(
      Cause::kSlowAccept,
      waiting ? Certainty::kProven
      : most  ? Certainty::kConsistent
              : Certainty::kGuessed,
      fmt::format("{} is slow to accept connections: the first request on a connection waits {}, "
                  "and the later ones on the same connection do not",
                  who(worst), format_duration(worst.length.median)));
  show(finding,
       fmt::format("so on {} of {} connections that had several requests",
                   format_count(worst.connections), format_count(compared)),
       worst.packets);
  if (waiting) {
    show(finding, fmt::format("connections were waiting to be accepted in {} of {} looks, up to {} "
                              "of {}",
                              listener->looks_waiting, listener->looks, listener->queue_max,
                              listener->backlog));
  } else {
    finding.missing.emplace_back(
        "the listener's queue: watch the server, for work that a program "
        "does once per connection looks the same");
  }
  show_extent(finding, seen);
  return finding;
}

Judgement judge_wire(const Recurrence& seen, const NetworkEvidence&) {
  const StallPattern& worst = seen.worst();
  Finding finding =
      found(Cause::kWireLatency, Certainty::kConsistent,
            fmt::format("the path to {} is slow: {} and more of a request pass on the way, with no "
                        "packet lost and no window full",
                        to_string(worst.server), format_duration(worst.length.median)));
  show(finding, "the kernels' own answers (SYN-ACK, ACK) take that long, so no program is involved",
       worst.packets);
  finding.missing.emplace_back("where on the path: a capture at the other end");
  show_extent(finding, seen);
  return finding;
}

}  // namespace tailward::diag
