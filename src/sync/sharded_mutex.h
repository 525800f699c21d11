// One lock made into N, each on cache lines of its own: the cure for a lock that many keys share.
//
// An integral key uses shard key mod N (for a negative key: of its two's complement), so that
// consecutive keys spread evenly; keys that are all multiples of some number may not, and are
// better mixed first (mix64). Any other key is hashed with std::hash and mixed; whatever is a
// string is hashed by its characters.
//
// Thread-safe. A thread that holds one shard must not ask for another one: use lock_all() instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/rng.h"
#include "sync/profiled_mutex.h"

namespace tailward::sync {

inline constexpr std::size_t kCacheLine = 64;

template <std::size_t N>
class ShardedMutex {
  static_assert(N > 0);

 public:
  using Guard = std::unique_lock<ProfiledMutex>;

  // Holds every shard.
  class AllGuard {
   public:
    explicit AllGuard(ShardedMutex& mutex) : mutex_(&mutex) {
      for (auto& shard : mutex.shards_) shard.mutex.lock();
    }
    AllGuard(AllGuard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
    AllGuard& operator=(AllGuard&&) = delete;
    ~AllGuard() {
      if (mutex_ == nullptr) return;
      for (std::size_t i = N; i > 0; --i) mutex_->shards_[i - 1].mutex.unlock();
    }

   private:
    ShardedMutex* mutex_;
  };

  ShardedMutex() = default;
  explicit ShardedMutex(ContentionProfile& profile)
      : ShardedMutex(profile, std::make_index_sequence<N>()) {}

  template <class Key>
  [[nodiscard]] static std::size_t index_of(const Key& key) {
    if constexpr (std::is_integral_v<Key>) {
      return static_cast<std::size_t>(static_cast<std::uint64_t>(key) % N);
    } else if constexpr (std::is_convertible_v<const Key&, std::string_view>) {
      return static_cast<std::size_t>(mix64(std::hash<std::string_view>{}(key)) % N);
    } else {
      return static_cast<std::size_t>(mix64(std::hash<Key>{}(key)) % N);
    }
  }

  static constexpr std::size_t size() { return N; }
  // REQUIRES: index < N.
  [[nodiscard]] ProfiledMutex& shard(std::size_t index) { return shards_.at(index).mutex; }
  [[nodiscard]] const ProfiledMutex& shard(std::size_t index) const {
    return shards_.at(index).mutex;
  }
  template <class Key>
  [[nodiscard]] ProfiledMutex& mutex_for(const Key& key) {
    return shards_[index_of(key)].mutex;
  }

  template <class Key>
  [[nodiscard]] Guard lock_for(const Key& key) {
    return Guard(mutex_for(key));
  }
  // Locks shard after shard in index order, so that two callers cannot block each other for ever.
  // The caller must hold none of them.
  [[nodiscard]] AllGuard lock_all() { return AllGuard(*this); }

 private:
  struct alignas(kCacheLine) Shard {
    Shard() = default;
    explicit Shard(ContentionProfile& profile) : mutex(profile) {}
    ProfiledMutex mutex;
  };

  template <std::size_t... I>
  ShardedMutex(ContentionProfile& profile, std::index_sequence<I...>)
      : shards_{{(static_cast<void>(I), Shard(profile))...}} {}

  std::array<Shard, N> shards_;
};

}  // namespace tailward::sync
