#include "net/loop.h"

#include <sys/prctl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <utility>

#include "base/check.h"
#include "net/loop_core.h"

namespace tailward::net {

ReadyItem::~ReadyItem() {
  if (queued_in_ != nullptr) queued_in_->forget(*this);
}

// Only the loop's thread touches the context's sockets, so their locks can go; posting stays safe.
LoopCore::LoopCore()
    : context_(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO),
      work_(context_.get_executor()),
      wake_(context_) {}

LoopCore::~LoopCore() { TAILWARD_CHECK(ready_count_ == 0); }

void LoopCore::post(Loop::Task task) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    posted_.push_back(std::move(task));
    // One wake-up for any number of tasks until the loop has taken them.
    wake = !std::exchange(wake_posted_, true);
  }
  if (wake) {
    posted_any_.store(true, std::memory_order_release);
    boost::asio::post(context_, [] {});
  }
}

void LoopCore::stop() {
  stopping_.store(true, std::memory_order_release);
  boost::asio::post(context_, [] {});
}

void LoopCore::run() {
  // 1 ns instead of 50 µs: the kernel would otherwise make every timer late by up to that, and with
  // it every hedge.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  while (!stopping_.exchange(false, std::memory_order_acquire)) turn();
}

bool LoopCore::run_until(UniqueFunction<bool()>& done, Duration at_most) {
  timers_.refresh();
  const TimePoint end = timers_.now() + at_most;
  const io::Timer alarm = timers_.at(end, [] {});
  while (!done()) {
    if (timers_.now() >= end) return false;
    turn();
  }
  return true;
}

void LoopCore::turn() {
  wait();
  context_.poll();
  timers_.refresh();
  run_posted();
  run_ready();
  // Timers last: they see what the turn's input has changed, so that a response that has just come
  // cancels its hedge.
  timers_.jump_to(timers_.now());
}

void LoopCore::wait() {
  if (ready_count_ > 0 || posted_any_.load(std::memory_order_acquire)) return;
  const TimePoint next = timers_.next_event();
  if (next <= timers_.now()) return;
  // An alarm that is too early costs one idle turn; moving it with every timer would cost a system
  // call each.
  if (next < wake_at_) {
    wake_at_ = next;
    wake_.expires_at(std::chrono::steady_clock::time_point(next.time_since_epoch()));
    wake_.async_wait([this](const boost::system::error_code& error) {
      if (!error) wake_at_ = kNever;
    });
  }
  context_.run_one();
}

void LoopCore::run_posted() {
  if (!posted_any_.exchange(false, std::memory_order_acquire)) return;
  {
    const std::lock_guard lock(mutex_);
    // Swapped, so that tasks may post: those run in the next turn.
    running_.swap(posted_);
    wake_posted_ = false;
  }
  for (Loop::Task& task : running_) task();
  running_.clear();
}

void LoopCore::run_ready() {
  // What an item makes ready in its turn (a write that went through at once) is run as well, up to
  // a bound, so that the timers get their time.
  std::size_t budget = std::max<std::size_t>(4 * ready_count_, 64);
  while (first_ready_ != nullptr && budget-- > 0) {
    ReadyItem& item = *first_ready_;
    forget(item);
    item.run();
  }
}

void LoopCore::ready(ReadyItem& item) {
  if (item.queued_in_ != nullptr) return;
  item.queued_in_ = this;
  item.before_ = last_ready_;
  item.after_ = nullptr;
  (last_ready_ == nullptr ? first_ready_ : last_ready_->after_) = &item;
  last_ready_ = &item;
  ++ready_count_;
}

void LoopCore::forget(ReadyItem& item) {
  if (item.queued_in_ == nullptr) return;
  item.queued_in_ = nullptr;
  (item.before_ == nullptr ? first_ready_ : item.before_->after_) = item.after_;
  (item.after_ == nullptr ? last_ready_ : item.after_->before_) = item.before_;
  --ready_count_;
}

namespace {

class Signals : public SignalWatch {
 public:
  Signals(LoopCore& core, std::initializer_list<int> signals, UniqueFunction<void(int)> callback)
      : state_(std::make_shared<State>(core, std::move(callback))) {
    for (const int number : signals) state_->set.add(number);
    listen(state_);
  }
  ~Signals() override {
    state_->callback = nullptr;
    state_->core.forget(*state_);
    boost::system::error_code ignored;
    state_->set.clear(ignored);  // gives the signals their default back
    state_->set.cancel(ignored);
  }

 private:
  struct State : ReadyItem, std::enable_shared_from_this<State> {
    State(LoopCore& in, UniqueFunction<void(int)> call)
        : core(in), set(in.context()), callback(std::move(call)) {}

    void run() override {
      const std::shared_ptr<State> keep = shared_from_this();
      std::vector<int> batch;
      batch.swap(arrived);
      for (const int number : batch) {
        if (callback) callback(number);
      }
    }

    LoopCore& core;
    boost::asio::signal_set set;
    UniqueFunction<void(int)> callback;
    std::vector<int> arrived;
  };

  static void listen(const std::shared_ptr<State>& state) {
    state->set.async_wait([state](const boost::system::error_code& error, int number) {
      if (error || !state->callback) return;
      state->arrived.push_back(number);
      state->core.ready(*state);
      listen(state);
    });
  }

  std::shared_ptr<State> state_;
};

}  // namespace

Loop::Loop() : core_(std::make_unique<LoopCore>()) {}
Loop::~Loop() = default;
io::Timers& Loop::timers() { return core_->timers(); }
TimePoint Loop::now() const { return core_->timers().now(); }
TimePoint Loop::precise_now() const { return core_->timers().precise_now(); }
void Loop::post(Task task) { core_->post(std::move(task)); }
void Loop::run() { core_->run(); }
bool Loop::run_until(UniqueFunction<bool()> done, Duration at_most) {
  return core_->run_until(done, at_most);
}
void Loop::stop() { core_->stop(); }
std::unique_ptr<SignalWatch> Loop::on_signals(std::initializer_list<int> signals,
                                              UniqueFunction<void(int)> callback) {
  return std::make_unique<Signals>(*core_, signals, std::move(callback));
}

}  // namespace tailward::net
