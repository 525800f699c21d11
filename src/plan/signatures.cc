#include "plan/signatures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/units.h"

namespace tailward::plan {
namespace {

using std::chrono::milliseconds;

// All lengths and places are in bins of FineCounts.
using Bins = std::int64_t;

// The body is the shortest span that holds this share of all latencies: waits start from there.
constexpr double kBodyShare = 0.8;
// Each search divides it by the number of places that it looks at (Bonferroni), so that a smooth
// log shows a heap that is none about once in ten thousand searches. docs/design/plan.md says what
// it was tested with.
constexpr double kLevel = 1e-4;  // of one search
// Significant is not yet notable: with ten million latencies every ripple is significant. A heap
// has at least twice what either neighbour has, and five latencies.
constexpr double kPeakRatio = 2;
constexpr std::uint64_t kCountMin = 5;
// A heap stands out against its direct neighbour, or against three and eight windows beside it.
constexpr Bins kFlanks = 8;  // windows on either side, at most
constexpr Bins kSome = 3;
// Windows overlap by seven eighths: a heap between two places loses at most a sixteenth of its
// width.
constexpr Bins kSteps = 8;               // places per window
constexpr Bins kPointsMin = 3;           // of a lattice that a window must hold
constexpr std::size_t kOccupiedMin = 4;  // bins that make a lattice

Bins bins(Duration d) { return d / FineCounts::kWidth; }
Duration time_of(Bins at) { return at * FineCounts::kWidth; }

struct Span {
  Bins from = 0;
  Bins to = 0;  // exclusive
  [[nodiscard]] Bins width() const { return to - from; }
};

class Counts {
 public:
  explicit Counts(const Samples& samples)
      : single_(samples.fine.counts()), total_(samples.histogram.count()) {
    sums_.reserve(single_.size() + 1);
    sums_.push_back(0);
    for (const std::uint64_t count : single_) sums_.push_back(sums_.back() + count);
  }
  // In [from, to).
  [[nodiscard]] std::uint64_t in(Bins from, Bins to) const {
    const auto clamped = [this](Bins at) {
      return static_cast<std::size_t>(std::clamp<Bins>(at, 0, stored()));
    };
    return from < to ? sums_[clamped(to)] - sums_[clamped(from)] : 0;
  }
  // The bin of the middle one of those in `span`. REQUIRES: there is one.
  [[nodiscard]] Bins median(Span span) const {
    const std::uint64_t before = in(0, span.from);
    const std::uint64_t rank = before + (in(span.from, span.to) + 1) / 2;
    const auto reached = std::lower_bound(sums_.begin(), sums_.end(), rank);
    return reached - sums_.begin() - 1;
  }
  [[nodiscard]] std::size_t occupied(Span span) const {
    const auto first = single_.begin() + std::clamp<Bins>(span.from, 0, stored());
    const auto last = single_.begin() + std::clamp<Bins>(span.to, 0, stored());
    return static_cast<std::size_t>(
        std::count_if(first, last, [](std::uint64_t count) { return count > 0; }));
  }
  [[nodiscard]] static Bins size() { return static_cast<Bins>(FineCounts::kBins); }
  // After these there are none.
  [[nodiscard]] Bins stored() const { return static_cast<Bins>(single_.size()); }
  [[nodiscard]] std::uint64_t total() const { return total_; }

  // The distance that all occupied bins of [from, to) keep, 0 when there are too few to say.
  [[nodiscard]] Bins lattice(Bins from, Bins to) const {
    Bins common = 0;
    Bins first = -1;
    std::size_t occupied = 0;
    for (Bins at = std::max<Bins>(from, 0); at < std::min(to, stored()); ++at) {
      if (single_[static_cast<std::size_t>(at)] == 0) continue;
      if (first < 0) first = at;
      common = std::gcd(common, at - first);
      ++occupied;
      if (common == 1 && occupied >= kOccupiedMin) break;
    }
    return occupied >= kOccupiedMin ? common : 0;
  }

 private:
  const std::vector<std::uint64_t>& single_;
  std::vector<std::uint64_t> sums_;
  std::uint64_t total_;
};

// The shortest span of kBodyShare of all; empty when that lies beyond what is counted.
std::optional<Span> body_of(const Counts& counts) {
  const auto needed =
      static_cast<std::uint64_t>(std::ceil(kBodyShare * static_cast<double>(counts.total())));
  if (needed == 0 || counts.in(0, Counts::size()) < needed) return std::nullopt;
  Span best{0, Counts::size()};
  Bins to = 0;
  // Two pointers that only move right: linear in the number of bins.
  for (Bins from = 0; from < Counts::size(); ++from) {
    while (to < Counts::size() && counts.in(from, to) < needed) ++to;
    if (counts.in(from, to) < needed) break;
    if (to - from < best.width()) best = {from, to};
  }
  return best;
}

// P(n or more of n + other fall into 1 of 1 + flanks equal windows).
double chance_of(std::uint64_t n, std::uint64_t other, Bins flanks) {
  // The binomial tail as a regularised incomplete beta function: exact, and without a sum over n.
  return boost::math::ibeta(static_cast<double>(n), static_cast<double>(other) + 1,
                            1 / (1 + static_cast<double>(flanks)));
}

// The latencies of `window` when it holds significantly more than what is beside it; `floor` is
// where the body ends: flanks do not reach into it.
std::optional<std::uint64_t> peak(const Counts& counts, Span window, Bins floor, Bins flanks,
                                  double level) {
  const Bins width = window.width();
  const Bins left = std::min(flanks, (window.from - floor) / width);
  const Bins right = std::min(flanks, (Counts::size() - window.to) / width);
  // Without a background on both sides a heap cannot be told from a slope.
  if (left < 1 || right < 1) return std::nullopt;
  const std::uint64_t n = counts.in(window.from, window.to);
  const std::uint64_t before = counts.in(window.from - width, window.from);
  const std::uint64_t after = counts.in(window.to, window.to + width);
  if (n < kCountMin ||
      static_cast<double>(n) < kPeakRatio * static_cast<double>(std::max(before, after))) {
    return std::nullopt;
  }
  const auto chance = [&](Bins beside, const auto& count) {
    const double near = chance_of(n, count(1), 1);
    // A rising or falling density is told by a few windows, a wide heap by many.
    const Bins some = std::min(kSome, beside);
    const double far =
        std::max(chance_of(n, count(some), some), chance_of(n, count(beside), beside));
    return std::min(near, far);
  };
  const double chance_left =
      chance(left, [&](Bins k) { return counts.in(window.from - k * width, window.from); });
  const double chance_right =
      chance(right, [&](Bins k) { return counts.in(window.to, window.to + k * width); });
  // The worse of the two sides decides: on a slope only one side is low.
  if (std::max(chance_left, chance_right) > level) return std::nullopt;
  return n;
}

// A heap of the body's form spills over into the windows beside; what lies further out was there
// before.
std::uint64_t excess(const Counts& counts, Span window, Bins floor) {
  const Bins width = window.width();
  const auto in = [&counts](Bins from, Bins to) {
    return static_cast<double>(counts.in(from, to));
  };
  // The background is the mean of both neighbours.
  double n = in(window.from, window.to) -
             (in(window.from - width, window.from) + in(window.to, window.to + width)) / 2;
  if (window.from - 2 * width >= floor) {
    const double around = in(window.from - 2 * width, window.from - width) +
                          in(window.to + width, window.to + 2 * width);
    n = std::max(n, in(window.from - width, window.to + width) - 1.5 * around);
  }
  return static_cast<std::uint64_t>(std::max(n, 0.0));
}

// Whether what looks like a heap is only a point of the lattice on which the log writes its values.
// A log with a fixed number of digits has a coarser lattice above 100 ms or 1 s than below it.
bool is_lattice(const Counts& counts, Span window, Duration resolution) {
  const Bins middle = (window.from + window.to) / 2;
  const Bins coarsest = std::max({counts.lattice(middle / 2, window.to),
                                  counts.lattice(window.from, middle * 2), bins(resolution)});
  return coarsest * kPointsMin > window.width();
}

// ---- known waits ------------------------------------------------------------------------------

// 40: delayed ACK (TCP_DELACK_MIN). 100 and its multiples: the period of a CPU quota. 200, 400,
// 800: the least retransmission time-out, doubled. 600, 1400: their sums. 1000, 3000, 7000: SYN
// time-outs of 1, 2 and 4 s summed; with tcp_syn_linear_timeouts every second. 5000: glibc's DNS
// time-out.
constexpr std::array<int, 15> kWaitsMs{40,   100,  200,  300,  400,  500,  600, 800,
                                       1000, 1400, 2000, 3000, 4000, 5000, 7000};

// Timers are late, by up to a tick, and long ones by up to a 32th: the kernel's timer wheel is the
// coarser the farther ahead.
constexpr Duration kTickMax = milliseconds(4);
constexpr int kWheel = 32;

struct Place {
  Duration wait{};
  Span window;
  Bins seen = 0;  // the wait as it was measured
};

// Of a heap of the body's form, blurred.
Bins width_for(Duration wait, Bins body) {
  const Bins late = std::max(bins(kTickMax), bins(wait) / kWheel);
  return static_cast<Bins>(std::hypot(static_cast<double>(body), static_cast<double>(late)));
}

// The offsets at which a heap of that wait may lie.
Span offsets_for(Duration wait) {
  // A little early, and late by a tick and a half and by more than the timer wheel's 1/32.
  return {bins(wait) * 985 / 1000, bins(wait) * 105 / 100 + bins(kTickMax) * 3 / 2 + 1};
}

Bins step_for(Bins width) { return std::max<Bins>(1, width / kSteps); }

std::vector<Place> find_known(const Counts& counts, Span body, Duration resolution) {
  Bins places = 0;
  for (const int wait : kWaitsMs) {
    const Bins width = width_for(milliseconds(wait), body.width());
    places += offsets_for(milliseconds(wait)).width() / step_for(width) + 1;
  }
  const double level = kLevel / static_cast<double>(places);
  std::vector<Place> found;
  const Bins middle = (body.from + body.to) / 2;
  const Bins median = counts.median(body);
  for (const int ms : kWaitsMs) {
    const Duration wait = milliseconds(ms);
    const Bins width = width_for(wait, body.width());
    const Span offsets = offsets_for(wait);
    std::optional<Place> best;
    std::uint64_t most = 0;
    for (Bins offset = offsets.from; offset < offsets.to; offset += step_for(width)) {
      const Bins from = middle + offset - width / 2;
      const Span window{from, from + width};
      // The offset with the most latencies is the heap's place: its neighbours see parts of the
      // same heap.
      const auto n = peak(counts, window, body.to, kFlanks, level);
      if (!n || *n <= most) continue;
      most = *n;
      best = Place{wait, window, counts.median(window) - median};
    }
    if (best && !is_lattice(counts, best->window, resolution)) found.push_back(*best);
  }
  return found;
}

// ---- equal gaps -------------------------------------------------------------------------------

// Bounds the search for series, which is quadratic in the peaks.
constexpr std::size_t kPeaksMax = 256;
// Two equal gaps happen by chance among a few peaks; three rarely do.
constexpr std::size_t kGapsMin = 3;

std::vector<Span> peaks_of(const Counts& counts, Bins width) {
  const Bins step = std::max<Bins>(1, width / 4);
  const double level = kLevel * static_cast<double>(step) / static_cast<double>(Counts::size());
  std::vector<Span> peaks;
  std::uint64_t most = 0;
  for (Bins from = 0; from < counts.stored() && peaks.size() < kPeaksMax; from += step) {
    const Span window{from, from + width};
    const auto n = peak(counts, window, 0, 1, level);
    if (!n) continue;
    const bool same = !peaks.empty() && from < peaks.back().to;
    if (same && *n <= most) continue;
    if (same) peaks.pop_back();
    most = *n;
    peaks.push_back(window);
  }
  return peaks;
}

struct Series {
  std::size_t first = 0;
  std::size_t gaps = 0;
};

// The longest run of peaks at equal distances.
Series longest_series(const std::vector<Span>& peaks, Bins width) {
  Series longest;
  for (std::size_t first = 0; first + 1 < peaks.size(); ++first) {
    const Bins gap = peaks[first + 1].from - peaks[first].from;
    // A twentieth of the gap, or as well as a peak's place is known.
    const Bins allowed = std::max({gap / 20, width / 4, Bins{1}});
    std::size_t last = first + 1;
    while (last + 1 < peaks.size() &&
           std::abs(peaks[last + 1].from - peaks[last].from - gap) <= allowed) {
      ++last;
    }
    const std::size_t gaps = last - first;
    // Peaks must stand clear of each other: two and a half widths.
    if (gaps <= longest.gaps || gap * 2 < width * 5) continue;
    longest = {first, gaps};
  }
  return longest;
}

struct Comb {
  Bins gap = 0;
  Span span;
  std::size_t peaks = 0;
  std::uint64_t count = 0;
};

std::optional<Comb> find_comb(const Counts& counts, Duration resolution) {
  constexpr Duration kNarrowest = std::chrono::microseconds(500);
  constexpr Duration kWidest = milliseconds(256);
  std::optional<Comb> best;
  // Widths by powers of two: a heap fits one of them to within a factor of √2.
  for (Duration width = kNarrowest; width <= kWidest; width *= 2) {
    if (width < kPointsMin * resolution) continue;
    const std::vector<Span> peaks = peaks_of(counts, bins(width));
    const Series series = longest_series(peaks, bins(width));
    if (series.gaps < kGapsMin || (best && series.gaps + 1 <= best->peaks)) continue;
    const Span span{peaks[series.first].from, peaks[series.first + series.gaps].to};
    const Bins length =
        counts.median(peaks[series.first + series.gaps]) - counts.median(peaks[series.first]);
    Comb comb{length / static_cast<Bins>(series.gaps), span, series.gaps + 1, 0};
    std::size_t blurred = 0;
    for (std::size_t at = series.first; at <= series.first + series.gaps; ++at) {
      comb.count += counts.in(peaks[at].from, peaks[at].to);
      blurred += counts.occupied(peaks[at]) > 1 ? 1 : 0;
    }
    // Heaps of one value each are how the log writes its values.
    if (blurred * 2 > comb.peaks) best = comb;
  }
  return best;
}

// ---- what they mean ---------------------------------------------------------------------------

struct Meaning {
  std::string_view name;
  std::string_view meaning;
  std::string_view prove;
};

constexpr Meaning kDelayedAck{
    "delayed-ack",
    "Nagle against delayed ACK: one end holds a small segment back until the other acknowledges, "
    "and that one waits 40 ms to do so",
    "ss -tieo dst SERVER: ato:40, notsent and unacked bytes; strace -e setsockopt for TCP_NODELAY; "
    "tailward lab interlock shows what it is like"};
constexpr Meaning kRetransmission{
    "tcp-retransmission",
    "a lost segment that TCP sends again after its least time-out, 200 ms, then 400, 800 …: packet "
    "loss, a full queue or an overflowing receiver",
    "nstat -az TcpRetransSegs TcpExtTCPTimeouts before and after; ss -ti: retrans:, rto:"};
constexpr Meaning kSyn{
    "syn-retransmission",
    "a SYN without an answer, sent again after 1 s, 3 s, 7 s: the listener's queue is full or "
    "packets are lost (or a time-out of 1 s with a second try)",
    "nstat -az TcpExtListenOverflows TcpExtListenDrops TcpExtTCPSynRetrans; ss -ltn: Recv-Q "
    "against "
    "Send-Q"};
constexpr Meaning kLinearSyn{
    "syn-retransmission-linear",
    "SYNs without an answer, sent again every second (Linux 6.5 and later do so four times), or a "
    "time-out of whole seconds with another try",
    "nstat -az TcpExtListenOverflows TcpExtTCPSynRetrans; sysctl net.ipv4.tcp_syn_linear_timeouts; "
    "the client's time-outs"};
constexpr Meaning kDns{
    "dns-timeout", "a DNS query without an answer: glibc asks again after 5 s",
    "tcpdump -ni any port 53: queries without answers; resolv.conf: options timeout"};
constexpr Meaning kQuota{
    "cpu-quota-period",
    "a CPU quota that is used up: the process stands still until the next period of 100 ms",
    "cpu.stat of the process's cgroup: nr_throttled and throttled_usec rise; cpu.max"};
constexpr Meaning kGaps{
    "equal-gaps",
    "latencies heap up at equal distances: something waits for a tick: a poll with a sleep, a "
    "batch, a timer, or a clock that is read seldom",
    "look for that interval in the configuration and the code (sleep, ticker, linger, flush "
    "interval); strace -f -T -e poll,epoll_wait,nanosleep,futex"};

const Meaning& meaning_of(Duration wait, const std::set<Duration>& all) {
  const auto has = [&all](int ms) { return all.contains(milliseconds(ms)); };
  switch (wait / milliseconds(1)) {
    case 40:
      return kDelayedAck;
    case 100:
    case 300:
    case 500:
      return kQuota;
    case 200:
    case 400:
      return has(100) || has(300) ? kQuota : kRetransmission;
    case 1000:
    case 7000:
      return kSyn;
    case 2000:
    case 4000:
      return kLinearSyn;
    case 3000:
      return has(600) && has(1400) ? kRetransmission : has(2000) ? kLinearSyn : kSyn;
    case 5000:
      return has(4000) ? kLinearSyn : kDns;
    default:
      return kRetransmission;
  }
}

Signature make(const Meaning& meaning, const Counts& counts, std::uint64_t count) {
  Signature one;
  one.name = meaning.name;
  one.meaning = meaning.meaning;
  one.prove = meaning.prove;
  one.count = count;
  one.share = static_cast<double>(count) / static_cast<double>(counts.total());
  return one;
}

bool near(Bins a, Bins b) { return std::abs(a - b) * 20 <= b; }

}  // namespace

SignatureSearch find_signatures(const Samples& samples) {
  SignatureSearch search;
  const Counts counts(samples);
  const std::optional<Span> body = body_of(counts);
  if (!body) return search;
  search.body_from = time_of(body->from);
  search.body_to = time_of(body->to);
  search.blind_below = time_of(2 * body->width());
  std::set<Duration> waits;
  const std::vector<Place> places = find_known(counts, *body, samples.resolution);
  for (const Place& place : places) waits.insert(place.wait);
  for (const Place& place : places) {
    Signature one =
        make(meaning_of(place.wait, waits), counts, excess(counts, place.window, body->to));
    one.at = place.wait;
    one.seen = time_of(place.seen);
    one.from = time_of(place.window.from);
    one.to = time_of(place.window.to);
    search.found.push_back(std::move(one));
  }
  if (const std::optional<Comb> comb = find_comb(counts, samples.resolution)) {
    const bool quota = near(comb->gap, bins(milliseconds(100)));
    const bool known = quota && waits.contains(milliseconds(100));
    if (!known) {
      Signature one = make(quota ? kQuota : kGaps, counts, comb->count);
      one.at = one.seen = time_of(comb->gap);
      one.from = time_of(comb->span.from);
      one.to = time_of(comb->span.to);
      search.found.push_back(std::move(one));
    }
  }
  return search;
}

}  // namespace tailward::plan
