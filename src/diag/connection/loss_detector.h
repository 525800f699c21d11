// Bytes that come again: lost, overtaken on the way, or only captured twice.
//
// Sources: RFC 5681 section 3.2 (three duplicate ACKs), RFC 2018 and 2883 (SACK, D-SACK), RFC 6298
// (RTO), RFC 8985 (tail-loss probe), RFC 3522 (time stamps tell which copy an ACK is for).
//
// Thread safety: one thread. One detector for the data of each side. Times do not run backwards.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/time.h"
#include "tcp/segment.h"
#include "tcp/sequence.h"

namespace tailward::diag {

// How a segment came to be sent again.
enum class RetransmitKind : std::uint8_t { kTimeout, kProbe, kFast };

// Sent and not yet acknowledged.
struct SentSegment {
  std::uint32_t begin = 0, end = 0;
  Duration at{}, again{};  // first and last sending
  std::uint64_t number = 0, again_number = 0;
  std::uint32_t ts = 0;
  std::uint16_t ip_id = 0;
  std::uint8_t copies = 1;
  std::array<std::uint8_t, 3> retransmits{};  // by RetransmitKind

  [[nodiscard]] std::uint32_t count(RetransmitKind kind) const {
    return retransmits[static_cast<std::size_t>(kind)];
  }
};

// In order of sequence. Past its limit the newest entry grows instead: what matters is when the
// oldest bytes were sent.
class SentRing {
 public:
  [[nodiscard]] bool empty() const { return head_ == entries_.size(); }
  [[nodiscard]] std::size_t size() const { return entries_.size() - head_; }
  [[nodiscard]] const SentSegment& front() const;
  void pop();
  void push(const SentSegment& sent);
  // Before all others: bytes whose first sending was not captured. Valid until the next change.
  SentSegment& push_front(const SentSegment& sent);
  // The entry that holds this byte, or null.
  SentSegment* find(std::uint32_t sequence);
  // The oldest that was sent more than once, or null.
  [[nodiscard]] const SentSegment* repeated() const;

  static constexpr std::size_t kSentMax = 32;

 private:
  std::vector<SentSegment> entries_;
  std::size_t head_ = 0;
};

class LossDetector {
 public:
  // New data. `expected`: where the data before it ended; a gap has been overtaken or lost.
  void sent(const tcp::Segment& segment, std::uint32_t expected, Duration now);

  // Data that end where earlier ones did, or before: which of the three was it? First ask whether
  // it is a copy, then whether it fills a gap; if neither, it has been sent again.
  [[nodiscard]] bool is_copy(const tcp::Segment& segment, Duration now);
  struct Filled {
    bool reordered = false;  // sent before what overtook it: nothing was lost
    SentSegment lost = {};   // otherwise: from what overtook it until now
  };
  std::optional<Filled> fill(const tcp::Segment& segment, Duration now, Duration rtt_to_sender);
  void sent_again(const tcp::Segment& segment, Duration now);

  // An ACK for nothing new, with nothing else to say; or one with SACK blocks above it.
  void duplicate_ack(Duration now, std::uint64_t number);
  void sacked(Duration now, std::uint64_t number);
  struct Progress {
    Duration last_sent{};  // of the newest data that the ACK covers; zero: not captured
    bool clean = true;     // nothing of them came twice: the time until the ACK is a round trip
    // The oldest that was sent again, unless the ACK is for its first copy.
    std::optional<SentSegment> repeated = {};
  };
  Progress acked(const tcp::Segment& ack);
  // What was sent again and never acknowledged.
  [[nodiscard]] const SentSegment* unfinished() const { return sent_.repeated(); }

 private:
  // Bytes that were overtaken, or lost on their way to where the capture was made.
  struct Hole {
    std::uint32_t begin = 0, end = 0;
    Duration at{};             // of the segment beyond it
    std::uint64_t number = 0;  // of that segment
    std::uint32_t ts = 0;
    std::uint16_t ip_id = 0;
  };

  [[nodiscard]] bool overtaken(const Hole& hole, const tcp::Segment& segment, Duration now,
                               Duration rtt_to_sender) const;
  [[nodiscard]] RetransmitKind kind_after(Duration since) const;
  void note_evidence(Duration now, std::uint64_t number);
  void shrink_hole(std::size_t at, const tcp::Segment& segment);

  SentRing sent_;
  std::array<Hole, 2> holes_{};
  std::uint8_t hole_count_ = 0;
  // Since the last ACK that told of progress:
  bool filled_ = false;  // a hole was
  bool sacked_ = false;
  std::uint32_t dup_acks_ = 0;
  Duration evidence_at_{};  // the first duplicate ACK or SACK; zero: none
  std::uint64_t evidence_number_ = 0;
};

}  // namespace tailward::diag
