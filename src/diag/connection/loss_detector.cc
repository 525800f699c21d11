#include "diag/connection/loss_detector.h"

#include <algorithm>

#include "base/check.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

// The time stamp that an ACK echoes tells which copy it is for (RFC 3522). One for the first was
// late, but nothing was lost. Data may echo an old stamp when they are sent again themselves.
bool is_for_first_copy(const SentSegment& sent, const tcp::Segment& ack) {
  return ack.payload == 0 && ack.ts_echo && sent.ts != 0 && tcp::is_after(sent.ts, *ack.ts_echo);
}

void add(std::uint8_t& count) {
  if (count < UINT8_MAX) ++count;
}

}  // namespace

const SentSegment& SentRing::front() const {
  TAILWARD_CHECK(!empty());
  return entries_[head_];
}

void SentRing::pop() {
  TAILWARD_CHECK(!empty());
  if (++head_ < entries_.size()) return;
  // Most connections are idle most of the time: they keep no room for what they do not send.
  if (entries_.capacity() > 4) {
    entries_ = {};
  } else {
    entries_.clear();
  }
  head_ = 0;
}

void SentRing::push(const SentSegment& sent) {
  if (size() >= kSentMax) {
    entries_.back().end = sent.end;
    return;
  }
  if (head_ >= kSentMax) {
    entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
  entries_.push_back(sent);
}

SentSegment& SentRing::push_front(const SentSegment& sent) {
  return *entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(head_), sent);
}

SentSegment* SentRing::find(std::uint32_t sequence) {
  for (std::size_t i = head_; i < entries_.size(); ++i) {
    SentSegment& entry = entries_[i];
    if (tcp::distance(sequence, entry.begin) >= 0 && tcp::is_after(entry.end, sequence)) {
      return &entry;
    }
  }
  return nullptr;
}

const SentSegment* SentRing::repeated() const {
  for (std::size_t i = head_; i < entries_.size(); ++i) {
    if (entries_[i].copies > 1) return &entries_[i];
  }
  return nullptr;
}

void LossDetector::sent(const tcp::Segment& s, std::uint32_t expected, Duration now) {
  if (tcp::is_after(s.seq, expected)) {
    if (hole_count_ == holes_.size()) {
      holes_[0] = holes_[1];  // forgotten: what fills it will look like new data sent again
      --hole_count_;
    }
    holes_[hole_count_++] = {.begin = expected,
                             .end = s.seq,
                             .at = now,
                             .number = s.number,
                             .ts = s.ts_value.value_or(0),
                             .ip_id = s.ip_id};
  }
  sent_.push({.begin = s.seq,
              .end = s.seq + s.payload,
              .at = now,
              .again = now,
              .number = s.number,
              .ts = s.ts_value.value_or(0),
              .ip_id = s.ip_id});
}

bool LossDetector::is_copy(const tcp::Segment& s, Duration now) {
  const SentSegment* sent = sent_.find(s.seq);
  return sent != nullptr && s.ip_id != 0 && s.ip_id == sent->ip_id &&
         s.ts_value.value_or(0) == sent->ts && now - sent->again <= thresholds.copy.within;
}

// The sender's own clock and count say which was sent first. Without them it is a matter of time.
bool LossDetector::overtaken(const Hole& hole, const tcp::Segment& s, Duration now,
                             Duration rtt_to_sender) const {
  if (s.ts_value && hole.ts != 0) {
    const std::int32_t newer = tcp::distance(*s.ts_value, hole.ts);
    if (newer != 0) return newer < 0;
    if (s.ip_id != 0 && hole.ip_id != 0) {
      return static_cast<std::int16_t>(s.ip_id - hole.ip_id) < 0;
    }
  }
  const Duration since = now - hole.at;
  // A sender that was told of the loss cannot have sent again sooner than half a round trip later.
  const bool told = dup_acks_ >= thresholds.loss.dup_acks && since > rtt_to_sender / 2;
  return !told && since <= std::max(thresholds.loss.overtaken_within, rtt_to_sender / 2);
}

RetransmitKind LossDetector::kind_after(Duration since) const {
  if (since >= thresholds.loss.timeout_min) return RetransmitKind::kTimeout;
  const bool evidence = dup_acks_ >= thresholds.loss.dup_acks || sacked_;
  return evidence ? RetransmitKind::kFast : RetransmitKind::kProbe;
}

void LossDetector::shrink_hole(std::size_t at, const tcp::Segment& s) {
  Hole& hole = holes_[at];
  if (s.seq == hole.begin) {
    hole.begin = s.seq + s.payload;
  } else {
    hole.end = s.seq;  // the rest of it is forgotten
  }
  if (tcp::is_after(hole.end, hole.begin)) return;
  if (at == 0) holes_[0] = holes_[1];
  --hole_count_;
}

std::optional<LossDetector::Filled> LossDetector::fill(const tcp::Segment& s, Duration now,
                                                       Duration rtt_to_sender) {
  for (std::uint8_t i = 0; i < hole_count_; ++i) {
    const Hole& hole = holes_[i];
    if (tcp::distance(s.seq, hole.begin) < 0 || !tcp::is_after(hole.end, s.seq)) continue;
    Filled filled{.reordered = overtaken(hole, s, now, rtt_to_sender)};
    if (!filled.reordered) {
      filled.lost = {.at = hole.at, .number = hole.number, .again_number = s.number};
      filled.lost.retransmits[static_cast<std::size_t>(kind_after(now - hole.at))] = 1;
    }
    filled_ = true;
    shrink_hole(i, s);
    return filled;
  }
  return {};
}

void LossDetector::sent_again(const tcp::Segment& s, Duration now) {
  SentSegment* sent = sent_.find(s.seq);
  if (sent == nullptr) {
    // Its first sending was not captured, but what the receiver said of it may have been.
    const bool known = evidence_at_ != Duration{0};
    const Duration since = known ? evidence_at_ : now;
    sent = &sent_.push_front({.begin = s.seq,
                              .end = s.seq + s.payload,
                              .at = since,
                              .again = since,
                              .number = known ? evidence_number_ : s.number});
  }
  add(sent->retransmits[static_cast<std::size_t>(kind_after(now - sent->again))]);
  add(sent->copies);
  TAILWARD_CHECK(sent->copies > 1);
  sent->again = now;
  sent->again_number = s.number;
  sent->ip_id = s.ip_id;
  sent->ts = s.ts_value.value_or(0);
}

void LossDetector::note_evidence(Duration now, std::uint64_t number) {
  if (evidence_at_ != Duration{0}) return;
  evidence_at_ = now;
  evidence_number_ = number;
}

void LossDetector::duplicate_ack(Duration now, std::uint64_t number) {
  ++dup_acks_;
  note_evidence(now, number);
}

void LossDetector::sacked(Duration now, std::uint64_t number) {
  sacked_ = true;
  note_evidence(now, number);
}

LossDetector::Progress LossDetector::acked(const tcp::Segment& ack) {
  Progress progress{.clean = !filled_};
  bool told = false;
  while (!sent_.empty() && tcp::distance(ack.ack, sent_.front().end) >= 0) {
    const SentSegment& sent = sent_.front();
    if (sent.copies > 1) {
      progress.clean = false;
      if (!told && !is_for_first_copy(sent, ack)) progress.repeated = sent;
      told = true;
    }
    progress.last_sent = sent.at;
    sent_.pop();
  }
  while (hole_count_ > 0 && tcp::distance(ack.ack, holes_[0].end) >= 0) {
    holes_[0] = holes_[1];  // lost by the capture, not by the network
    --hole_count_;
  }
  filled_ = sacked_ = false;
  dup_acks_ = 0;
  evidence_at_ = Duration{0};
  return progress;
}

}  // namespace tailward::diag
