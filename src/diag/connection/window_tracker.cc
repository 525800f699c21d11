#include "diag/connection/window_tracker.h"

#include <algorithm>

#include "base/check.h"
#include "diag/thresholds.h"

namespace tailward::diag {
namespace {

// More than any window: what is not known must not look like a limit.
constexpr std::uint32_t kUnknownWindow = 1U << 30;

std::int8_t clamped(std::uint8_t scale) {
  return static_cast<std::int8_t>(std::min<int>(scale, ScaleEstimator::kScaleMax));
}

}  // namespace

void WindowTracker::take_syn(const tcp::Segment& syn) {
  scale_ = syn.window_scale ? clamped(*syn.window_scale) : std::int8_t{-1};
  seen_ = true;
  window_ = largest_ = syn.window;
}

void WindowTracker::agree_on_scales(WindowTracker& a, WindowTracker& b, bool both_seen) {
  a.scale_known_ = b.scale_known_ = both_seen;
  if (a.scale_ >= 0 && b.scale_ >= 0) return;
  a.scale_ = b.scale_ = both_seen ? std::int8_t{0} : std::int8_t{-1};
}

void WindowTracker::know_scale(std::uint8_t scale) {
  scale_ = clamped(scale);
  scale_known_ = true;
}

bool WindowTracker::small() const {
  return largest_ > 0 && largest_ <= thresholds.window.small && scale_known_;
}

bool WindowTracker::take(const tcp::Segment& s, Duration now) {
  if (!scale_known_ || scale_learned_) {
    if (const auto scale = estimator_.add(s.window, s.ack)) {
      scale_ = static_cast<std::int8_t>(*scale);
      scale_known_ = scale_learned_ = true;
      scaled_by_unknown_ = false;
      largest_ = 0;  // in bytes of another scale
    }
  }
  raw_ = s.window;
  raw_largest_ = std::max(raw_largest_, s.window);
  ever_shrank_ = ever_shrank_ || s.window < raw_largest_ / 2;
  std::uint32_t window = s.window;
  if (scale_known_) {
    TAILWARD_CHECK(scale_ >= 0 && scale_ <= ScaleEstimator::kScaleMax);
    window <<= scale_;
  }
  if (scaled_by_unknown_ && window > 0) window = kUnknownWindow;
  const bool changed = !seen_ || window != window_;
  seen_ = true;
  window_ = window;
  if (!scaled_by_unknown_) largest_ = std::max(largest_, window);
  if (window == 0) {
    shut_.opened_at = Duration{0};
    if (!shut_.valid) {
      shut_.valid = true;
      shut_.at = now;
      shut_.number = s.number;
      shut_.probes = 0;
    }
  } else if (shut_.valid && shut_.opened_at == Duration{0}) {
    shut_.opened_at = now;
  }
  return changed;
}

// Unread data take their room from the window, whatever its scale: a reader that is behind all the
// time is what the sender waits for, even if the window never closes.
std::optional<StallEvent> WindowTracker::check_reader(const tcp::Segment& s, Duration now,
                                                      bool peer_spoke_last) {
  const bool large = scale_known_ ? largest_ > thresholds.window.small
                                  : scaled_by_unknown_ || raw_largest_ > thresholds.window.small;
  if (!large || s.window >= raw_largest_ / 2 || !peer_spoke_last) {
    behind_at_ = Duration{0};
    return {};
  }
  std::optional<StallEvent> event;
  if (behind_at_ != Duration{0}) {
    if (now - behind_at_ < thresholds.window.behind_min) return {};
    event = {.kind = StallKind::kZeroWindow,
             .from = behind_at_,
             .until = now,
             .amount = now - behind_at_,
             .packets = {behind_number_, s.number},
             .window_max = scaled_by_unknown_ ? 0 : largest_,
             .window_known = scale_known_};
  }
  behind_at_ = now;
  behind_number_ = s.number;
  return event;
}

void WindowTracker::probed(Duration now, std::uint64_t number) {
  if (!shut_.valid) return;
  ++shut_.probes;
  shut_.probe_at = now;
  shut_.probe_number = number;
}

StallEvent WindowTracker::shut_event(Duration until, std::uint64_t number) const {
  TAILWARD_CHECK(shut_.valid);
  return {.kind = small() ? StallKind::kReceiveWindow : StallKind::kZeroWindow,
          .from = shut_.at,
          .until = until,
          .amount = until - shut_.at,
          .packets = {shut_.number, shut_.probes > 0 ? shut_.probe_number : 0, number},
          .probes = shut_.probes,
          .window_max = largest_,
          .window_known = scale_known_};
}

std::optional<StallEvent> WindowTracker::peer_sends(Duration now, std::uint64_t number,
                                                    Duration rtt_to_peer) {
  if (!shut_.valid) return {};
  const bool opened = shut_.opened_at != Duration{0};
  // Later than that, it had nothing to send when the window opened: nobody waited.
  const bool prompt =
      opened && now - shut_.opened_at <= thresholds.window.prompt + rtt_to_peer * 3 / 2;
  std::optional<StallEvent> event;
  if (shut_.probes > 0 || prompt) event = shut_event(now, number);
  if (opened) {
    shut_.valid = false;
  } else {  // data into a closed window are a probe, too
    probed(now, number);
    shut_.at = now;
  }
  return event;
}

std::optional<StallEvent> WindowTracker::finish() const {
  if (!shut_.valid || shut_.probes == 0) return {};
  return shut_event(shut_.probe_at, shut_.probe_number);
}

bool WindowTracker::exceeded_by(std::int64_t in_flight) {
  if (scale_known_ || scaled_by_unknown_ || window_ == 0 || !seen_) return false;
  if (in_flight <= static_cast<std::int64_t>(largest_)) return false;
  scaled_by_unknown_ = true;
  return true;
}

}  // namespace tailward::diag
