#include "sim_tcp/endpoint.h"

#include <algorithm>

#include "tcp/sequence.h"

namespace tailward::sim_tcp {
namespace {

constexpr std::uint8_t kShift = 7;  // of windows up to 8 MiB
constexpr std::uint16_t kMss = 1460;
constexpr Duration kSynWait = std::chrono::seconds(1);  // TCP_TIMEOUT_INIT; doubles (RFC 6298)
constexpr unsigned kSynsMax = 7;                        // tcp_syn_retries: 6 after the first

}  // namespace

Endpoint::Endpoint(const Identity& identity, const EndpointOptions& options, Ticks ticks, Rng& rng)
    : identity_(identity),
      ticks_(ticks),
      sender_(options, ticks),
      receiver_(options.receive_buffer, kShift, ticks),
      my_first_(static_cast<std::uint32_t>(rng.next())),
      packet_id_(static_cast<std::uint16_t>(rng.next())) {}

tcp::Segment Endpoint::segment(TimePoint now) {
  tcp::Segment made;
  made.from = identity_.local;
  made.to = identity_.remote;
  made.seq = my_first_ + static_cast<std::uint32_t>(sender_.next());
  made.ack = their_first_ + static_cast<std::uint32_t>(receiver_.next());
  made.ack_flag = true;
  made.window =
      static_cast<std::uint16_t>(std::min<std::uint64_t>(0xffff, receiver_.window() >> kShift));
  made.ip_id = ++packet_id_;
  made.ts_value = static_cast<std::uint32_t>((now.time_since_epoch() + identity_.clock) /
                                             std::chrono::milliseconds(1));
  made.ts_echo = echo_;
  const std::vector<SequenceRange>& sacks = receiver_.sacks();
  // With time stamps three blocks fit into the options (RFC 2018, section 3).
  for (std::size_t i = 0; i < std::min<std::size_t>(3, sacks.size()); ++i) {
    made.sack[made.sack_count++] = {their_first_ + static_cast<std::uint32_t>(sacks[i].begin),
                                    their_first_ + static_cast<std::uint32_t>(sacks[i].end)};
  }
  return made;
}

void Endpoint::send_syn(TimePoint now) {
  tcp::Segment syn = segment(now);
  syn.syn = true;
  syn.seq = my_first_;
  // The window of a SYN is never scaled (RFC 7323, section 2.2).
  syn.window = static_cast<std::uint16_t>(std::min<std::uint64_t>(0xffff, receiver_.window()));
  syn.mss = kMss;
  syn.window_scale = kShift;
  syn.sack_permitted = true;
  if (state_ == State::kSynSent) {
    syn.ack_flag = false;
    syn.ack = 0;
    syn.ts_echo = 0;
  }
  syn_at_ = now;
  syn_due_ = syns_ + 1 < kSynsMax ? ticks_.fires(now, kSynWait * (1u << syns_)) : kNever;
  ++syns_;
  outbox_.push_back(syn);
}

void Endpoint::connect(TimePoint now) {
  state_ = State::kSynSent;
  send_syn(now);
}

void Endpoint::take_syn(const tcp::Segment& segment) {
  their_first_ = segment.seq;
  their_shift_ = segment.window_scale.value_or(0);
  echo_ = segment.ts_value.value_or(0);
}

void Endpoint::answer_syn(const tcp::Segment& syn, TimePoint now) {
  take_syn(syn);
  state_ = State::kSynReceived;
  send_syn(now);
}

std::uint64_t Endpoint::offset_of_mine(std::uint32_t ack) const {
  const auto here = static_cast<std::uint32_t>(sender_.acked()) + my_first_;
  return sender_.acked() + static_cast<std::uint64_t>(std::int64_t{tcp::distance(ack, here)});
}

std::uint64_t Endpoint::offset_of_theirs(std::uint32_t seq) const {
  const auto here = static_cast<std::uint32_t>(receiver_.next()) + their_first_;
  return receiver_.next() + static_cast<std::uint64_t>(std::int64_t{tcp::distance(seq, here)});
}

// False: the segment says nothing more.
bool Endpoint::finish_handshake(const tcp::Segment& segment, TimePoint now, bool admitted) {
  const bool acks_syn = segment.ack_flag && segment.ack == my_first_ + 1;
  if (state_ == State::kSynSent) {
    if (!segment.syn || !acks_syn) return false;
    take_syn(segment);
  } else {
    if (segment.syn) {
      syns_ = std::min(syns_, 1u);
      send_syn(now);
      return false;
    }
    if (!segment.ack_flag || !admitted) return false;
  }
  state_ = State::kOpen;
  syn_due_ = kNever;
  if (syns_ == 1) sender_.sample(now - syn_at_);
  const std::uint64_t window = std::uint64_t{segment.window} << (segment.syn ? 0 : their_shift_);
  sender_.on_ack({.until = 1, .window = window}, now);
  if (segment.syn) send_ack(now);
  return !segment.syn;
}

void Endpoint::take_ack(const tcp::Segment& segment, TimePoint now) {
  SequenceRange sacks[4];
  for (std::size_t i = 0; i < segment.sack_count; ++i) {
    sacks[i] = {offset_of_mine(segment.sack[i].begin), offset_of_mine(segment.sack[i].end)};
  }
  sender_.on_ack({.until = offset_of_mine(segment.ack),
                  .window = std::uint64_t{segment.window} << their_shift_,
                  .sacks = {sacks, segment.sack_count}},
                 now);
}

// True: acknowledge at once.
bool Endpoint::take_data(const tcp::Segment& segment, TimePoint now) {
  const std::uint64_t begin = offset_of_theirs(segment.seq);
  const std::uint64_t end = begin + segment.payload + (segment.fin ? 1 : 0);
  // RFC 7323, section 4.3: the stamp of the oldest segment that is not acknowledged yet.
  if (begin <= receiver_.next()) echo_ = segment.ts_value.value_or(echo_);
  if (end == begin) return begin < receiver_.next();  // a probe
  const bool at_once = receiver_.on_data({begin, end}, now, sender_.rto());
  if (segment.fin && receiver_.next() == end) fin_seen_ = true;
  return at_once || segment.fin;
}

void Endpoint::on_segment(const tcp::Segment& segment, TimePoint now, bool admitted) {
  if (state_ != State::kOpen) {
    if (!finish_handshake(segment, now, admitted)) {
      if (open()) flush(now);
      return;
    }
  } else if (segment.syn) {
    send_ack(now);  // the SYN-ACK again: our ACK was lost, or dropped
    return;
  }
  take_ack(segment, now);
  const bool ack_now = take_data(segment, now);
  const std::size_t before = outbox_.size();
  flush(now);
  if (ack_now && outbox_.size() == before) send_ack(now);
}

void Endpoint::send_ack(TimePoint now) {
  const std::uint64_t window = receiver_.window();
  outbox_.push_back(segment(now));
  receiver_.on_ack_sent(window);
}

void Endpoint::send_data(const Sender::Outgoing& what, TimePoint now) {
  const std::uint64_t window = receiver_.window();
  tcp::Segment made = segment(now);
  made.seq = my_first_ + static_cast<std::uint32_t>(what.begin);
  made.payload = what.payload;
  made.fin = what.fin;
  made.psh = what.push && what.payload > 0;
  outbox_.push_back(made);
  if (what.payload > 0) receiver_.on_data_sent(now);
  receiver_.on_ack_sent(window);
}

void Endpoint::send_window_probe(TimePoint now) {
  tcp::Segment probe = segment(now);
  probe.seq = my_first_ + static_cast<std::uint32_t>(sender_.acked()) - 1;
  outbox_.push_back(probe);
}

void Endpoint::flush(TimePoint now) {
  while (const auto next = sender_.next_segment(now)) send_data(*next, now);
  sender_.arm(now);
}

std::uint64_t Endpoint::write(std::uint64_t bytes, TimePoint now) {
  const std::uint64_t taken = sender_.write(bytes);
  flush(now);
  return taken;
}

void Endpoint::read(std::uint64_t bytes, TimePoint now) {
  if (receiver_.on_read(bytes)) send_ack(now);
}

void Endpoint::set_cork(bool on, TimePoint now) {
  sender_.cork(on);
  if (!on) flush(now);
}

void Endpoint::close(TimePoint now) {
  sender_.close();
  flush(now);
}

TimePoint Endpoint::deadline() const {
  return std::min({syn_due_, sender_.deadline(), receiver_.ack_due()});
}

void Endpoint::on_timer(TimePoint now) {
  if (syn_due_ <= now) send_syn(now);
  if (receiver_.ack_due() <= now) {
    receiver_.on_timer(sender_.rto());
    send_ack(now);
  }
  if (sender_.deadline() > now) return;
  const Sender::Probe probe = sender_.on_timer(now);
  if (probe.segment) send_data(*probe.segment, now);
  if (probe.window_probe) send_window_probe(now);
  flush(now);
}

}  // namespace tailward::sim_tcp
