// The inside of Loop, for the other sources of net that need Asio. Not for users: it drags Asio in.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <vector>

#include "net/loop.h"
#include "net/real_clock.h"

namespace tailward::net {

// Something that became ready and waits for its place in the turn. Asio's handlers do not call
// users: they queue one of these, so that the turn's clock is read before anybody hears of
// anything. Destroying it takes it out of the queue, which is how a stream's callbacks end with the
// stream.
class ReadyItem {
 public:
  ReadyItem() = default;
  virtual ~ReadyItem();
  ReadyItem(const ReadyItem&) = delete;
  ReadyItem& operator=(const ReadyItem&) = delete;
  virtual void run() = 0;  // may destroy the item

 private:
  friend class LoopCore;
  LoopCore* queued_in_ = nullptr;
  ReadyItem* before_ = nullptr;
  ReadyItem* after_ = nullptr;
};

class LoopCore {
 public:
  LoopCore();
  ~LoopCore();

  void post(Loop::Task task);
  void stop();
  void run();
  bool run_until(UniqueFunction<bool()>& done, Duration at_most);
  // Runs `item` soon, in this turn or the next. Idempotent.
  void ready(ReadyItem& item);
  // Takes `item` out again; nothing if it is not queued.
  void forget(ReadyItem& item);

  [[nodiscard]] RealTimers& timers() { return timers_; }
  [[nodiscard]] boost::asio::io_context& context() { return context_; }

 private:
  friend class ReadyItem;

  void turn();
  void wait();
  void run_ready();
  void run_posted();

  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer wake_;
  TimePoint wake_at_ = kNever;
  RealTimers timers_;

  ReadyItem* first_ready_ = nullptr;
  ReadyItem* last_ready_ = nullptr;
  std::size_t ready_count_ = 0;

  std::mutex mutex_;
  std::vector<Loop::Task> posted_;  // guarded by mutex_
  bool wake_posted_ = false;        // guarded by mutex_
  std::vector<Loop::Task> running_;
  std::atomic<bool> posted_any_{false};
  std::atomic<bool> stopping_{false};
};

}  // namespace tailward::net
