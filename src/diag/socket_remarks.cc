#include "diag/socket_remarks.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace tailward::diag {
namespace {

// A message each way is small when it fits into a segment with room to spare, and a conversation
// has about as many segments one way as the other.
constexpr std::uint32_t kTalkSegmentsMin = 8;
constexpr double kSmallShareOfMss = 0.5;
constexpr std::uint32_t kSmallBytes = 1'024;  // where the MSS is loopback's 64 KiB
constexpr double kTalkRatioMax = 8;

constexpr std::uint32_t kSmallBacklog = 128;
constexpr std::uint32_t kIdleMs = 10 * 60 * 1000;
constexpr std::uint32_t kCorkedMs = 200;  // the kernel sends a corked rest after this
constexpr double kLimitedShare = 0.1;     // of the time with data to send
constexpr std::uint64_t kLimitedUsMin = 10'000;
constexpr double kRetransmitShare = 0.01;
constexpr std::uint64_t kRetransmitMin = 3;
constexpr std::uint32_t kNotSentMin = 256 * 1024;
constexpr double kNotSentSeconds = 0.1;
constexpr std::uint32_t kUnreadMin = 64 * 1024;
constexpr std::uint32_t kUnreadMs = 100;
constexpr std::uint64_t kMovedMin = 64 * 1024;  // bytes that a rate can be read from

struct Look {
  const tcp::SocketFacts& now;
  const tcp::SocketFacts* earlier;
  Duration apart;
  tcp::Runtime runtime;
  std::vector<SocketRemark> remarks = {};

  void add(std::string_view code, Severity severity, std::string sentence) {
    remarks.push_back({code, std::move(sentence), severity});
  }
  // The counter since `earlier`, or since the socket was born.
  template <class T>
  [[nodiscard]] std::uint64_t moved(std::optional<T> tcp::TcpInfo::*counter) const {
    const std::uint64_t until = (now.tcp.*counter).value_or(0);
    const std::uint64_t from = earlier != nullptr ? (earlier->tcp.*counter).value_or(0) : 0;
    return until > from ? until - from : 0;
  }
  // "in 2.0 s" or "in its life"
  [[nodiscard]] std::string when() const {
    return earlier != nullptr ? fmt::format("in {}", format_duration(apart)) : "in its life";
  }
};

std::string us_text(std::uint64_t us) { return format_duration(std::chrono::microseconds(us)); }

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// ---- listeners --------------------------------------------------------------------------------

void look_at_listener(Look& look) {
  const tcp::SocketFacts& now = look.now;
  const std::string waiting = fmt::format("{} of {}", now.recv_queue, now.send_queue);
  if (now.recv_queue > 0 && now.recv_queue >= now.send_queue) {
    look.add("listen-queue-full", Severity::kFault,
             fmt::format("{} connections wait to be accepted: the queue is full, new ones are "
                         "dropped and tried again after 1 s. Accept faster, or give listen() and "
                         "net.core.somaxconn more",
                         waiting));
  } else if (now.send_queue < kSmallBacklog) {
    look.add("small-backlog", Severity::kNote,
             fmt::format("only {} connections may wait to be accepted: a burst of more is dropped "
                         "and tried again after 1 s. listen() takes {} and more",
                         std::max(now.send_queue, 1U), kSmallBacklog));
  }
}

// ---- connections ------------------------------------------------------------------------------

bool is_small(std::uint64_t bytes, std::uint64_t segments, std::optional<std::uint32_t> mss) {
  const double mean = share(bytes, segments);
  const double room = kSmallShareOfMss * mss.value_or(1'448);
  return mean > 0 && mean < std::min<double>(room, kSmallBytes);
}

// Nagle holds a small segment back while another one is unacknowledged. In a bulk stream that is
// good; in a conversation a reply waits for the peer's delayed acknowledgement, 40 ms and more.
void look_for_nagle(Look& look) {
  if (look.now.options.nodelay.value_or(true)) return;
  const std::uint64_t out = look.moved(&tcp::TcpInfo::data_segs_out);
  const std::uint64_t in = look.moved(&tcp::TcpInfo::data_segs_in);
  if (out < kTalkSegmentsMin || in < kTalkSegmentsMin) return;
  const double ratio = share(out, in);
  if (ratio > kTalkRatioMax || ratio < 1 / kTalkRatioMax) return;
  const tcp::TcpInfo& tcp = look.now.tcp;
  if (!is_small(look.moved(&tcp::TcpInfo::bytes_sent), out, tcp.snd_mss) ||
      !is_small(look.moved(&tcp::TcpInfo::bytes_received), in, tcp.rcv_mss)) {
    return;
  }
  // More than one small segment for each that came: messages are written in pieces.
  const bool in_pieces = ratio > 1.5;
  look.add("nagle", in_pieces ? Severity::kWarning : Severity::kNote,
           fmt::format("small messages both ways ({:.0f} B out, {:.0f} B in a segment) with "
                       "TCP_NODELAY off: {}. Set TCP_NODELAY, or write each message at once",
                       share(look.moved(&tcp::TcpInfo::bytes_sent), out),
                       share(look.moved(&tcp::TcpInfo::bytes_received), in),
                       in_pieces ? "messages are written in pieces, and the second piece waits for "
                                   "the peer's acknowledgement, 40 ms when that is delayed"
                                 : "a message written in two pieces waits for the peer's "
                                   "acknowledgement, 40 ms when that is delayed"));
}

void look_for_cork(Look& look) {
  const tcp::TcpInfo& tcp = look.now.tcp;
  if (!look.now.options.cork.value_or(false)) return;
  // Within an answer it is on by intention.
  if (tcp.last_data_sent_ms.value_or(0) < kCorkedMs) return;
  const bool holds = tcp.notsent_bytes.value_or(0) > 0;
  look.add("cork", holds ? Severity::kFault : Severity::kWarning,
           holds ? fmt::format("TCP_CORK is on and holds {} back until the kernel's 200 ms are "
                               "over. Clear it at the end of each message",
                               bytes_text(*tcp.notsent_bytes))
                 : "TCP_CORK was left on: the end of each message waits 200 ms. Clear it at the "
                   "end of each message");
}

std::optional<std::uint64_t> best_rtt_us(const tcp::TcpInfo& tcp) {
  const std::optional<std::uint32_t> rtt = tcp.min_rtt_us ? tcp.min_rtt_us : tcp.rtt_us;
  if (!rtt || *rtt == 0) return std::nullopt;
  return *rtt;
}

// A pinned buffer is too small when it holds less than twice what is under way on a full path
// (bandwidth × round-trip time), or when the kernel itself counts that it waited for it.
void look_at_send_buffer(Look& look) {
  const tcp::SocketFacts& now = look.now;
  const std::uint64_t busy = look.moved(&tcp::TcpInfo::busy_us);
  const std::uint64_t waited = look.moved(&tcp::TcpInfo::sndbuf_limited_us);
  const double waiting = share(waited, busy);
  const bool limited = waited >= kLimitedUsMin && waiting >= kLimitedShare;
  const bool pinned = now.options.sndbuf_locked.value_or(false);
  const double buffer = now.options.sndbuf.value_or(0);
  const std::string asked = bytes_text(buffer / 2);
  const auto rtt = best_rtt_us(now.tcp);
  double needed = 0;
  if (rtt && now.tcp.delivery_bytes_per_s && look.moved(&tcp::TcpInfo::bytes_sent) >= kMovedMin) {
    needed = 2 * static_cast<double>(*now.tcp.delivery_bytes_per_s * *rtt) / 1e6;
  }
  const std::string path =
      rtt ? fmt::format("{}/s × {}",
                        bytes_text(static_cast<double>(now.tcp.delivery_bytes_per_s.value_or(0))),
                        us_text(*rtt))
          : "";
  if (pinned && needed > buffer) {
    look.add("small-send-buffer", Severity::kWarning,
             fmt::format("the application pinned the send buffer: SO_SNDBUF {}; 2 × {} need {}. "
                         "Leave it to the kernel, or set at least that",
                         asked, path, bytes_text(needed)));
  } else if (pinned && limited) {
    look.add("small-send-buffer", Severity::kWarning,
             fmt::format("the application pinned the send buffer: SO_SNDBUF {}, and {} of the time "
                         "with data to send was spent waiting for room in it {}. Leave it to the "
                         "kernel, or set at least {}",
                         asked, format_share(waiting), look.when(),
                         bytes_text(std::max(needed, 4 * buffer))));
  } else if (limited) {
    look.add("sndbuf-limited", Severity::kWarning,
             fmt::format("{} of the time with data to send was spent waiting for room in the send "
                         "buffer ({}) {}. Raise net.ipv4.tcp_wmem's third figure",
                         format_share(waiting), us_text(waited), look.when()));
  }
}

void look_at_receive_buffer(Look& look) {
  const tcp::SocketFacts& now = look.now;
  if (!now.options.rcvbuf_locked.value_or(false)) return;
  const double buffer = now.options.rcvbuf.value_or(0);
  const std::string pinned = fmt::format("the application pinned the receive buffer: SO_RCVBUF {}",
                                         bytes_text(buffer / 2));
  const std::uint64_t received = look.moved(&tcp::TcpInfo::bytes_received);
  if (received < kMovedMin) return;
  // What was taken in during a round trip, as the receiver measures it for its autotuning, or what
  // came in since the last look.
  double needed = 0;
  std::string path;
  const std::optional<std::uint32_t> rtt = now.tcp.rcv_rtt_us ? now.tcp.rcv_rtt_us : now.tcp.rtt_us;
  if (look.earlier != nullptr && look.apart > Duration{} && rtt) {
    const double per_s = static_cast<double>(received) / to_seconds(look.apart);
    needed = 2 * per_s * *rtt / 1e6;
    path = fmt::format("{}/s × {}", bytes_text(per_s), us_text(*rtt));
  } else if (now.tcp.rcv_rtt_us && now.tcp.rcv_space) {
    needed = 2.0 * *now.tcp.rcv_space;
    path = fmt::format("{} in a round trip of {}", bytes_text(*now.tcp.rcv_space),
                       us_text(*now.tcp.rcv_rtt_us));
  }
  const double segments = 4.0 * now.tcp.rcv_mss.value_or(0);
  if (needed > buffer) {
    look.add("small-receive-buffer", Severity::kWarning,
             fmt::format("{}; 2 × {} need {}. Leave it to the kernel, or set at least that", pinned,
                         path, bytes_text(needed)));
  } else if (buffer < segments) {
    look.add("small-receive-buffer", Severity::kWarning,
             fmt::format("{}, less than two segments of {} fit: the peer waits for window updates "
                         "or sends by timer. Leave it to the kernel, or set at least {}",
                         pinned, bytes_text(now.tcp.rcv_mss.value_or(0)), bytes_text(segments)));
  }
}

void look_at_window(Look& look) {
  const std::uint64_t busy = look.moved(&tcp::TcpInfo::busy_us);
  const std::uint64_t waited = look.moved(&tcp::TcpInfo::rwnd_limited_us);
  if (waited < kLimitedUsMin || share(waited, busy) < kLimitedShare) return;
  look.add("rwnd-limited", Severity::kWarning,
           fmt::format("{} of the time with data to send was spent waiting for the peer's receive "
                       "window ({}) {}: the peer reads slowly, or its buffer is small",
                       format_share(share(waited, busy)), us_text(waited), look.when()));
}

void look_at_queue(Look& look) {
  const tcp::TcpInfo& tcp = look.now.tcp;
  const std::uint64_t waiting = tcp.notsent_bytes.value_or(0);
  const std::uint64_t rate = tcp.delivery_bytes_per_s.value_or(0);
  if (waiting < kNotSentMin || rate == 0 || share(waiting, rate) < kNotSentSeconds) return;
  look.add("not-sent", Severity::kNote,
           fmt::format("{} wait in the send queue, {} at the measured {}/s: what is written now "
                       "leaves that much later. TCP_NOTSENT_LOWAT keeps the queue short",
                       bytes_text(static_cast<double>(waiting)),
                       format_duration(from_ms(share(waiting, rate) * 1000)),
                       bytes_text(static_cast<double>(rate))));
}

// The other side of a closed window: this process does not read.
void look_for_unread(Look& look) {
  const std::uint32_t arrived_ms = look.now.tcp.last_data_recv_ms.value_or(0);
  if (look.now.recv_queue < kUnreadMin || arrived_ms < kUnreadMs) return;
  look.add("unread", Severity::kWarning,
           fmt::format("{} have arrived and are not read, the last of them {} ago: what reads this "
                       "socket is busy or waits for something else",
                       bytes_text(look.now.recv_queue),
                       format_duration(std::chrono::milliseconds(arrived_ms))));
}

void look_for_loss(Look& look) {
  const tcp::TcpInfo& tcp = look.now.tcp;
  if (tcp.backoff.value_or(0) > 0 && tcp.probes.value_or(0) == 0 && tcp.unacked.value_or(0) > 0) {
    look.add("retransmitting", Severity::kFault,
             fmt::format("no acknowledgement: the timer has backed off {} times, the next attempt "
                         "comes after {}",
                         *tcp.backoff, us_text(tcp.rto_us.value_or(0))));
  }
  if (tcp.probes.value_or(0) > 0 && tcp.notsent_bytes.value_or(0) > 0) {
    look.add("zero-window", Severity::kFault,
             fmt::format("the peer's receive window is closed with {} to send: it does not read",
                         bytes_text(*tcp.notsent_bytes)));
  }
  const std::uint64_t again = look.moved(&tcp::TcpInfo::total_retrans);
  const std::uint64_t sent = look.moved(&tcp::TcpInfo::data_segs_out);
  if (again < kRetransmitMin || share(again, sent) < kRetransmitShare) return;
  look.add("retransmissions", Severity::kWarning,
           fmt::format("{} of {} data segments were sent again ({}) {}", format_count(again),
                       format_count(sent), format_share(share(again, sent)), look.when()));
}

// A peer that disappears without a word is noticed by keep-alive or by sending. Not on loopback,
// where peers cannot disappear so.
void look_for_keepalive(Look& look) {
  const tcp::SocketOptions& options = look.now.options;
  if (options.keepalive.value_or(true) || options.user_timeout_ms.value_or(0) > 0) return;
  if (look.now.remote.address.is_loopback()) return;
  const tcp::TcpInfo& tcp = look.now.tcp;
  const std::uint32_t idle =
      std::min({tcp.last_data_sent_ms.value_or(0), tcp.last_data_recv_ms.value_or(0),
                tcp.last_ack_recv_ms.value_or(0)});
  if (idle < kIdleMs) return;
  look.add("no-keepalive", Severity::kNote,
           fmt::format("idle for {} with SO_KEEPALIVE off: a peer or firewall that forgot the "
                       "connection is noticed at the next request, by its timeout",
                       format_duration(std::chrono::milliseconds(idle))));
}

// ---- what the runtime did not do by itself ----------------------------------------------------

void look_at_defaults(Look& look) {
  const tcp::SocketOptions& options = look.now.options;
  const RuntimeDefaults usual = defaults_of(look.runtime);
  std::vector<std::string> differs;
  const auto compare = [&](std::string_view name, auto is, auto normally) {
    if (is && normally && *is != *normally) {
      differs.push_back(fmt::format("{} {}", name, *is ? "on" : "off"));
    }
  };
  if (look.now.state == tcp::TcpState::kEstablished) {
    compare("TCP_NODELAY", options.nodelay, usual.nodelay);
    compare("SO_KEEPALIVE", options.keepalive, usual.keepalive);
  }
  // None of them sets these.
  if (options.sndbuf_locked.value_or(false)) {
    differs.push_back(fmt::format("SO_SNDBUF {}", options.sndbuf.value_or(0) / 2));
  }
  if (options.rcvbuf_locked.value_or(false)) {
    differs.push_back(fmt::format("SO_RCVBUF {}", options.rcvbuf.value_or(0) / 2));
  }
  if (options.linger_s.value_or(-1) >= 0) {
    differs.push_back(fmt::format("SO_LINGER {} s{}", *options.linger_s,
                                  *options.linger_s == 0 ? " (close sends a reset)" : ""));
  }
  if (differs.empty()) return;
  std::string list;
  for (const std::string& one : differs) list += (list.empty() ? "" : ", ") + one;
  const bool named =
      look.runtime != tcp::Runtime::kUnknown && look.runtime != tcp::Runtime::kNative;
  look.add("not-default", Severity::kNote,
           fmt::format("the application set: {}; {}", list,
                       named ? fmt::format("{} by itself does not", to_string(look.runtime))
                             : "the kernel's default is otherwise"));
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kFault:
      break;
  }
  return "fault";
}

RuntimeDefaults defaults_of(tcp::Runtime runtime) {
  switch (runtime) {
    case tcp::Runtime::kGo:
      return {.nodelay = true, .keepalive = true, .keepidle_s = 15};
    case tcp::Runtime::kRedis:
      return {.nodelay = true, .keepalive = true, .keepidle_s = 300};
    case tcp::Runtime::kUnknown:
    case tcp::Runtime::kNative:
    case tcp::Runtime::kJava:
    case tcp::Runtime::kNode:
    case tcp::Runtime::kNginx:
    case tcp::Runtime::kPython:
      break;
  }
  return {};
}

std::string bytes_text(double bytes) {
  if (bytes >= 1024.0 * 1024) return fmt::format("{:.1f} MiB", bytes / (1024.0 * 1024));
  if (bytes >= 1024) return fmt::format("{:.0f} KiB", bytes / 1024);
  return fmt::format("{:.0f} B", bytes);
}

std::vector<SocketRemark> socket_remarks(const tcp::SocketFacts& now, tcp::Runtime runtime,
                                         const tcp::SocketFacts* earlier, Duration apart) {
  Look look{.now = now, .earlier = earlier, .apart = apart, .runtime = runtime};
  if (now.state == tcp::TcpState::kListen) {
    look_at_listener(look);
  } else {
    look_for_loss(look);
    look_for_cork(look);
    look_for_nagle(look);
    look_at_send_buffer(look);
    look_at_receive_buffer(look);
    look_at_window(look);
    look_at_queue(look);
    look_for_unread(look);
    look_for_keepalive(look);
  }
  look_at_defaults(look);
  std::stable_sort(look.remarks.begin(), look.remarks.end(),
                   [](const auto& a, const auto& b) { return a.severity > b.severity; });
  return std::move(look.remarks);
}

}  // namespace tailward::diag
