#include "sync/contention_profile.h"

#include <algorithm>

#include "base/rng.h"
#include "base/wall_clock.h"

namespace tailward::sync {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

void raise_to(std::atomic<std::int64_t>& max, std::int64_t value) {
  std::int64_t known = max.load(kRelaxed);
  while (known < value && !max.compare_exchange_weak(known, value, kRelaxed)) {
  }
}

}  // namespace

void ContentionCounters::wait_ended(Duration wait, Duration handover) {
  contentions_.fetch_add(1, kRelaxed);
  wait_ns_.fetch_add(wait.count(), kRelaxed);
  handover_ns_.fetch_add(handover.count(), kRelaxed);
  raise_to(wait_max_ns_, wait.count());
}

void ContentionCounters::hold_ended(Duration hold, Duration charged) {
  contended_holds_.fetch_add(1, kRelaxed);
  hold_ns_.fetch_add(hold.count(), kRelaxed);
  charged_ns_.fetch_add(charged.count(), kRelaxed);
  raise_to(hold_max_ns_, hold.count());
}

ContentionTotals ContentionCounters::totals() const {
  ContentionTotals totals;
  totals.contentions = contentions_.load(kRelaxed);
  totals.wait = Duration{wait_ns_.load(kRelaxed)};
  totals.wait_max = Duration{wait_max_ns_.load(kRelaxed)};
  totals.handover = Duration{handover_ns_.load(kRelaxed)};
  totals.contended_holds = contended_holds_.load(kRelaxed);
  totals.hold = Duration{hold_ns_.load(kRelaxed)};
  totals.hold_max = Duration{hold_max_ns_.load(kRelaxed)};
  totals.charged = Duration{charged_ns_.load(kRelaxed)};
  return totals;
}

ContentionProfile::ContentionProfile(const ContentionOptions& options)
    : options_(options),
      created_(options.stamp()),
      holders_(options.stacks_max),
      waiters_(options.stacks_max) {}

// A random draw, not every n-th: locks are often taken in turns, and the n-th would always be the
// same one's.
bool ContentionProfile::drawn(ContentionView which) {
  if (options_.sample_every == 0) return false;
  const std::uint64_t event = view(which).events.fetch_add(1, kRelaxed);
  const std::uint64_t draw =
      mix64(mix64(options_.seed + static_cast<std::uint64_t>(which)) + event);
  return ((draw >> 32) * options_.sample_every) >> 32 == 0;  // below 1 in sample_every
}

StackRow* ContentionProfile::sample(ContentionView which, const void* return_address) {
  if (!drawn(which)) return nullptr;
  Stack stack;
  capture_stack(stack, return_address);
  return &view(which).table.intern(stack);
}

StackRow* ContentionProfile::sample(ContentionView which, const Stack& stack) {
  return drawn(which) ? &view(which).table.intern(stack) : nullptr;
}

ContentionRow ContentionProfile::row_of(const StackRow& row) const {
  const auto stack = row.stack().view();
  const std::uint64_t samples = row.samples();
  return {{stack.begin(), stack.end()},
          samples,
          samples * options_.sample_every,
          row.wait() * static_cast<std::int64_t>(options_.sample_every)};
}

ContentionRows ContentionProfile::rows_of(const View& view) const {
  ContentionRows rows;
  for (const StackRow* row : view.table.rows()) rows.rows.push_back(row_of(*row));
  std::ranges::stable_sort(rows.rows, std::ranges::greater{}, &ContentionRow::wait);
  rows.lost = row_of(view.table.lost());
  rows.truncated = view.table.truncated();
  return rows;
}

ContentionSnapshot ContentionProfile::snapshot() const {
  ContentionSnapshot snapshot;
  snapshot.totals = totals();
  snapshot.holders = rows_of(holders_);
  snapshot.waiters = rows_of(waiters_);
  snapshot.sample_every = options_.sample_every;
  snapshot.covered = now() - created_;
  snapshot.taken_unix_ns = wall_clock_now().count();
  return snapshot;
}

}  // namespace tailward::sync
