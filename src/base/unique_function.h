// A callable that is moved, not copied, and kept in place when it is small.
//
// What std::move_only_function (C++23) is, with a fixed inline room of 48 bytes, so that the
// callbacks of timers and reads allocate nothing. Larger callables go to the heap. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"

namespace tailward {

template <class Signature>
class UniqueFunction;

template <class R, class... Args>
class UniqueFunction<R(Args...)> {
 public:
  UniqueFunction() = default;
  UniqueFunction(std::nullptr_t) {}

  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, UniqueFunction> &&
           std::is_invocable_r_v<R, std::remove_cvref_t<F>&, Args...>) UniqueFunction(F&& f) {
    using Stored = std::remove_cvref_t<F>;
    if constexpr (sizeof(Stored) <= kRoom && alignof(Stored) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Stored>) {
      ::new (static_cast<void*>(room_)) Stored(std::forward<F>(f));
      ops_ = &kInline<Stored>;
    } else {
      ::new (static_cast<void*>(room_)) Stored*(new Stored(std::forward<F>(f)));
      ops_ = &kHeap<Stored>;
    }
  }

  UniqueFunction(UniqueFunction&& other) noexcept { take(other); }
  UniqueFunction& operator=(UniqueFunction&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  UniqueFunction& operator=(std::nullptr_t) {
    reset();
    return *this;
  }
  ~UniqueFunction() { reset(); }

  explicit operator bool() const { return ops_ != nullptr; }

  // REQUIRES: not empty.
  R operator()(Args... args) {
    TAILWARD_CHECK(ops_ != nullptr);
    return ops_->call(room_, std::forward<Args>(args)...);
  }

 private:
  static constexpr std::size_t kRoom = 48;

  struct Ops {
    R (*call)(void*, Args&&...);
    void (*move)(void* from, void* to);
    void (*destroy)(void*);
  };

  // What std::invoke_r (C++23) does: takes members too, and drops a result that nobody asked for.
  template <class Stored>
  static R invoke(Stored& f, Args&&... args) {
    if constexpr (std::is_void_v<R>) {
      static_cast<void>(std::invoke(f, std::forward<Args>(args)...));
    } else {
      return std::invoke(f, std::forward<Args>(args)...);
    }
  }

  template <class Stored>
  static constexpr Ops kInline{[](void* at, Args&&... args) -> R {
                                 return invoke(*static_cast<Stored*>(at),
                                               std::forward<Args>(args)...);
                               },
                               [](void* from, void* to) {
                                 ::new (to) Stored(std::move(*static_cast<Stored*>(from)));
                                 static_cast<Stored*>(from)->~Stored();
                               },
                               [](void* at) { static_cast<Stored*>(at)->~Stored(); }};

  template <class Stored>
  static constexpr Ops kHeap{
      [](void* at, Args&&... args) -> R {
        return invoke(**static_cast<Stored**>(at), std::forward<Args>(args)...);
      },
      [](void* from, void* to) { ::new (to) Stored*(*static_cast<Stored**>(from)); },
      [](void* at) { delete *static_cast<Stored**>(at); }};

  void take(UniqueFunction& other) {
    ops_ = std::exchange(other.ops_, nullptr);
    if (ops_ != nullptr) ops_->move(other.room_, room_);
  }
  void reset() {
    if (const Ops* ops = std::exchange(ops_, nullptr)) ops->destroy(room_);
  }

  alignas(std::max_align_t) std::byte room_[kRoom];
  const Ops* ops_ = nullptr;
};

}  // namespace tailward
