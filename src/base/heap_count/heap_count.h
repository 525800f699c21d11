// Counts what a program allocates, by replacing the global operator new and delete.
//
// A library of its own (tailward::heap_count): only programs that link it pay for the counting.
#pragma once

#include <cstdint>

namespace tailward {

struct HeapUse {
  std::uint64_t allocations = 0;      // since the start
  std::uint64_t allocated_bytes = 0;  // since the start
  std::uint64_t live_bytes = 0;       // now
  std::uint64_t peak_bytes = 0;       // since the last reset
};

// Thread-safe. `reset` starts a new peak at what is live now.
HeapUse heap_use(bool reset = false);

}  // namespace tailward
