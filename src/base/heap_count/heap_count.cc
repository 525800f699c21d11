#include "base/heap_count/heap_count.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// The counters must exist before any constructor runs: constant-initialised, the one exception to
// the rule against mutable globals, since operator new has no other place for them.
constinit std::atomic<std::uint64_t> allocations{0};
constinit std::atomic<std::uint64_t> allocated_bytes{0};
constinit std::atomic<std::uint64_t> live_bytes{0};
constinit std::atomic<std::uint64_t> peak_bytes{0};

void* count(void* memory) noexcept {
  const std::uint64_t size = ::malloc_usable_size(memory);
  allocations.fetch_add(1, std::memory_order_relaxed);
  allocated_bytes.fetch_add(size, std::memory_order_relaxed);
  const std::uint64_t live = live_bytes.fetch_add(size, std::memory_order_relaxed) + size;
  std::uint64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live, std::memory_order_relaxed)) {
  }
  return memory;
}

void* try_allocate(std::size_t size) noexcept {
  void* memory = std::malloc(size == 0 ? 1 : size);
  return memory == nullptr ? nullptr : count(memory);
}

void* allocate(std::size_t size) {
  void* memory = try_allocate(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* allocate_aligned(std::size_t size, std::align_val_t alignment) {
  const auto align = static_cast<std::size_t>(alignment);
  void* memory = std::aligned_alloc(align, (size + align - 1) / align * align);
  if (memory == nullptr) throw std::bad_alloc();
  return count(memory);
}

void release(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, align);
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return allocate_aligned(size, align);
}
// std::stable_sort asks this way; a sanitizer's own would not match the delete below.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return try_allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return try_allocate(size);
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

namespace tailward {

HeapUse heap_use(bool reset) {
  if (reset) peak_bytes.store(live_bytes.load());
  return {allocations.load(), allocated_bytes.load(), live_bytes.load(), peak_bytes.load()};
}

}  // namespace tailward
