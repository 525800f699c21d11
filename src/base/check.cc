#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tailward {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "tailward: bug: %s does not hold (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace tailward
