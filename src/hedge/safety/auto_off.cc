#include "hedge/safety/auto_off.h"

#include <algorithm>

namespace tailward::hedge {

void AutoOff::tick(Switchback& switchback, TimePoint now) {
  if (!enabled_) return;
  if (off_since_) {
    if (now < retrial_at_) return;
    off_since_.reset();
    switchback.restart();
    pairs_seen_ = 0;
    return;
  }
  // One look a pair. More looks at the same figures would only be more chances of a false alarm.
  if (switchback.measured() == pairs_seen_) return;
  pairs_seen_ = switchback.measured();
  if (!switchback.on_trial()) off_for_ = retrial_;
  if (!harms(switchback.effect(kHarmConfidence))) return;
  off_since_ = now;
  retrial_at_ = now + off_for_;
  off_for_ = std::min(2 * off_for_, retrial_max_);
}

void AutoOff::reset() {
  off_since_.reset();
  off_for_ = retrial_;
}

}  // namespace tailward::hedge
