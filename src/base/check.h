// Assertions that stay in release builds. A failed check is a bug of ours: the process says where
// and stops.
#pragma once

namespace tailward {

[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace tailward

#define TAILWARD_CHECK(condition)                      \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::tailward::check_failed(#condition, __FILE__, __LINE__))
