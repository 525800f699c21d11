#include "sync/stamp.h"

#include <ctime>

namespace tailward::sync {
namespace {

std::int64_t read_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  constexpr std::int64_t kSecond = 1'000'000'000;
  return static_cast<std::int64_t>(time.tv_sec) * kSecond + time.tv_nsec;
}

}  // namespace

TimePoint stamp() { return TimePoint{Duration{read_ns(CLOCK_MONOTONIC)}}; }

std::int64_t unix_time_ns() { return read_ns(CLOCK_REALTIME); }

}  // namespace tailward::sync
