// What is remembered of one side of a connection: of the data it sends, and of the window it
// offers. Bounded; plain values.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "diag/flight.h"
#include "diag/sample.h"
#include "tcp/sequence.h"

namespace tailward::diag {

// How a segment came to be sent again.
enum class RetransmitKind : std::uint8_t { kTimeout, kProbe, kFast };

// Sent and not yet acknowledged.
struct Sent {
  std::uint32_t begin = 0, end = 0;
  Duration at{}, again{};  // first and last sending
  std::uint64_t number = 0, again_number = 0;
  std::uint32_t ts = 0;
  std::uint16_t ip_id = 0;
  std::uint8_t copies = 1;
  std::array<std::uint8_t, 3> how{};  // by RetransmitKind
};

// In order of sequence. Past its limit the newest entry grows instead: what matters is when the
// oldest bytes were sent.
class SentRing {
 public:
  [[nodiscard]] bool empty() const { return head_ == entries_.size(); }
  Sent& front() { return entries_[head_]; }
  void pop() {
    if (++head_ == entries_.size()) {
      // Most connections are idle most of the time: they keep no room for what they do not send.
      if (entries_.capacity() > 4) {
        entries_ = {};
      } else {
        entries_.clear();
      }
      head_ = 0;
    }
  }
  void push(const Sent& sent) {
    if (entries_.size() - head_ >= kSentMax) {
      entries_.back().end = sent.end;
      return;
    }
    if (head_ >= kSentMax) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    entries_.push_back(sent);
  }
  // Before all others: bytes whose first sending was not seen.
  Sent& push_front(const Sent& sent) {
    return *entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(head_), sent);
  }
  // The entry that holds this byte.
  Sent* find(std::uint32_t sequence) {
    for (std::size_t i = head_; i < entries_.size(); ++i) {
      Sent& entry = entries_[i];
      if (tcp::distance(sequence, entry.begin) >= 0 && tcp::is_after(entry.end, sequence))
        return &entry;
    }
    return nullptr;
  }
  // The oldest that was sent more than once.
  [[nodiscard]] const Sent* repeated() const {
    for (std::size_t i = head_; i < entries_.size(); ++i) {
      if (entries_[i].copies > 1) return &entries_[i];
    }
    return nullptr;
  }
  [[nodiscard]] std::size_t size() const { return entries_.size() - head_; }
  static constexpr std::size_t kSentMax = 32;

 private:
  std::vector<Sent> entries_;
  std::size_t head_ = 0;
};

// Bytes that were overtaken, or lost on their way to where the capture was made.
struct Hole {
  std::uint32_t begin = 0, end = 0;
  Duration at{};             // of the segment beyond it
  std::uint64_t number = 0;  // of that segment
  std::uint32_t ts = 0;
  std::uint16_t ip_id = 0;
};

// The ACK of everything that was outstanding.
struct Release {
  bool valid = false;  // a pure ACK, and nothing was said by either side since
  Duration at{}, late{};
  std::uint64_t number = 0;
};

// Segments in quick succession, without a word from the other side.
struct Run {
  Duration began{}, last{};
  Duration waited{};  // for acknowledgements: the congestion window's time, not the program's
  std::uint64_t first_number = 0, last_number = 0, bytes = 0;
  std::uint32_t count = 0, small = 0;
};

struct Fingerprint {
  std::uint32_t hash = 0, at_us = 0, interface = 0;
};

struct Endpoint {
  bool started = false;  // next and acked are known
  bool fin = false;
  std::uint32_t first = 0;            // of its data, where its SYN was seen
  std::uint32_t next = 0, acked = 0;  // beyond the last byte sent; acknowledged by the other side
  std::uint64_t segments = 0, bytes = 0, packets = 0;
  // Options of its SYN.
  std::uint16_t mss_option = 0;
  std::int8_t scale = -1;
  bool scale_known = false;  // or learned: see Connection::learn_scale
  bool timestamps = false;
  std::uint32_t payload_max = 0;
  std::uint32_t row_of = 0;  // the payload of segments that came in a row
  // The window that it offers.
  bool window_seen = false;
  std::uint16_t raw_window = 0;  // as it stood in the last segment
  // Where what learn_scale() compares with began: the window has not grown since.
  std::uint32_t anchor_ack = 0;
  std::uint16_t anchor_window = 0;
  bool scale_learned = false;
  std::uint16_t raw_window_max = 0;
  bool shrunk = false;  // to less than half of that
  std::array<std::uint8_t, 15> scale_votes{}, scale_tries{};
  bool scaled = false;  // by an unknown factor: more was in flight than its windows say
  std::uint32_t window = 0, window_max = 0;
  bool zero = false;  // it has closed, until the other side has sent again
  Duration zero_at{}, opened_at{}, probe_at{};
  std::uint64_t zero_number = 0, probe_number = 0;
  // Since when more than half of it has been taken by unread data; zero: it is not.
  Duration behind_at{};
  std::uint64_t behind_number = 0;
  std::uint32_t probes = 0;
  // How long it takes to acknowledge, as seen from the capture.
  Duration min_ack_rtt = kForever;
  Sample<16> answers;
  // The fastest that it ever said anything new upon something: at least the round trip, and
  // no more where acknowledgements are what it waits for.
  Duration rtt_bound = kForever;
  // A time stamp of its own that waits for its echo.
  std::uint32_t stamp = 0, last_stamp = 0;
  Duration stamp_at{};  // zero: none waits
  // Its last data.
  Duration data_at{}, advanced_at{}, all_acked_at{};  // advanced: more of it was acknowledged
  std::uint64_t data_number = 0;
  std::uint32_t data_bytes = 0;
  bool data_full = false;
  std::uint8_t streak = 0;  // segments with data since the other side's
  Release release;
  Run run;
  // Loss.
  SentRing sent;
  std::array<Hole, 2> holes{};
  std::uint8_t hole_count = 0;
  bool filled = false;  // a hole was, since the last ACK that told of progress
  bool sacked = false;
  std::uint32_t dup_acks = 0;
  Duration evidence_at{};  // the first duplicate ACK or SACK
  std::uint64_t evidence_number = 0;
  std::unique_ptr<FlightTracker> flight;
  std::array<Fingerprint, 8> fingerprints{};
  std::uint8_t fingerprint_at = 0;
};

}  // namespace tailward::diag
