#include "load/closed_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace tailward::load {

// One call of a request (a leg of the fan-out).
class ClosedLoop::Leg : public client::CallHandler {
 public:
  Leg(ClosedLoop& loop, Slot& slot) : loop_(loop), slot_(slot) {}

  void start(http::Request&& request, TimePoint started);
  void stop() { call_.reset(); }

  void on_response_head(http::Response&& head) override { status_ = head.status; }
  void on_body(std::span<const char>) override {}
  void on_end() override;
  void on_error(Error error) override;

 private:
  ClosedLoop& loop_;
  Slot& slot_;
  std::optional<client::Call> call_;
  TimePoint started_{};
  int status_ = 0;
};

// One of the requests in flight. When it ends, its slot starts the next one.
class ClosedLoop::Slot {
 public:
  explicit Slot(ClosedLoop& loop) : loop_(loop) {
    for (std::size_t i = 0; i < loop.options_.width; ++i) {
      legs_.push_back(std::make_unique<Leg>(loop, *this));
    }
  }

  void start(std::uint64_t number) {
    started_ = loop_.client_.timers().precise_now();
    waiting_for_ = legs_.size();
    good_ = true;
    for (std::size_t i = 0; i < legs_.size(); ++i) {
      legs_[i]->start(loop_.options_.request(number * legs_.size() + i), started_);
    }
  }
  void stop() {
    for (const auto& leg : legs_) leg->stop();
  }
  void leg_ended(bool good) {
    good_ = good_ && good;
    if (--waiting_for_ == 0) loop_.ended(*this);
  }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] TimePoint started() const { return started_; }

 private:
  ClosedLoop& loop_;
  std::vector<std::unique_ptr<Leg>> legs_;
  TimePoint started_{};
  std::size_t waiting_for_ = 0;
  bool good_ = true;
};

void ClosedLoop::Leg::start(http::Request&& request, TimePoint started) {
  started_ = started;
  status_ = 0;
  call_.emplace(loop_.client_, *this);
  call_->start(std::move(request), nullptr, {.deadline = started + loop_.options_.deadline});
}

void ClosedLoop::Leg::on_end() {
  const bool good = status_ < 400;
  if (good) {
    loop_.call_latency_.record(loop_.client_.timers().precise_now() - started_);
  } else {
    loop_.last_error_ = {
        ErrorKind::kDisconnected, fmt::format("the server answered {}", status_), {}};
  }
  slot_.leg_ended(good);
}

void ClosedLoop::Leg::on_error(Error error) {
  loop_.last_error_ = std::move(error);
  slot_.leg_ended(false);
}

ClosedLoop::ClosedLoop(client::Client& client, Options options)
    : client_(client), options_(std::move(options)) {
  TAILWARD_CHECK(options_.total > 0 && options_.in_flight > 0 && options_.width > 0 &&
                 options_.request);
}

ClosedLoop::~ClosedLoop() = default;

void ClosedLoop::start(UniqueFunction<void()> done) {
  TAILWARD_CHECK(slots_.empty());
  done_ = std::move(done);
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(options_.in_flight, options_.total));
  for (std::size_t i = 0; i < count; ++i) slots_.push_back(std::make_unique<Slot>(*this));
  running_ = count;
  for (const auto& slot : slots_) next(*slot);
}

void ClosedLoop::stop() {
  for (const auto& slot : slots_) slot->stop();
}

void ClosedLoop::next(Slot& slot) { slot.start(counts_.started++); }

void ClosedLoop::ended(Slot& slot) {
  if (slot.good()) {
    latency_.record(client_.timers().precise_now() - slot.started());
    ++counts_.answered;
    failures_in_a_row_ = 0;
  } else {
    ++counts_.failed;
    gave_up_ = ++failures_in_a_row_ >= options_.failures_in_a_row_max || gave_up_;
  }
  if (!gave_up_ && counts_.started < options_.total) {
    next(slot);
    return;
  }
  // This runs inside one of the slot's calls: they are kept until the loop is destroyed.
  if (--running_ == 0) {
    finished_ = true;
    if (done_) done_();
  }
}

}  // namespace tailward::load
