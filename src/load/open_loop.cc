#include "load/open_loop.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace tailward::load {

// One of the requests in flight, or room for one.
class OpenLoop::Slot : public client::CallHandler {
 public:
  explicit Slot(OpenLoop& loop) : loop_(loop) {}

  void start(std::uint64_t number, TimePoint intended) {
    observation = {.number = number, .intended = intended};
    status_ = 0;
    call_.emplace(loop_.client_, *this);
    call_->start(loop_.options_.request(number), nullptr,
                 {.deadline = intended + loop_.options_.deadline});
  }

  void on_response_head(http::Response&& head) override { status_ = head.status; }
  void on_body(std::span<const char>) override {}
  void on_end() override { end(status_ < 400); }
  void on_error(Error) override { end(false); }

  Observation observation;

 private:
  void end(bool ok) {
    observation.attempts = call_->attempts();
    call_.reset();
    loop_.ended(*this, ok);
  }

  OpenLoop& loop_;
  std::optional<client::Call> call_;
  int status_ = 0;
};

OpenLoop::OpenLoop(client::Client& client, Options options)
    : client_(client), options_(std::move(options)), rng_(options_.seed) {
  TAILWARD_CHECK(options_.per_s > 0 && options_.in_flight_max > 0 && options_.request);
}

OpenLoop::~OpenLoop() = default;

Duration OpenLoop::gap() {
  const double mean_ns = 1e9 / options_.per_s;
  const double ns = options_.arrivals == Arrivals::kPoisson ? rng_.exponential(mean_ns) : mean_ns;
  return Duration{static_cast<Duration::rep>(ns)};
}

void OpenLoop::start() {
  TAILWARD_CHECK(next_ == kNever && slots_.empty());
  next_ = client_.timers().now() + gap();
  pump();
}

void OpenLoop::set_rate(double per_s) {
  TAILWARD_CHECK(per_s > 0);
  options_.per_s = per_s;
  if (next_ == kNever) return;
  const TimePoint now = client_.timers().now();
  // An overdue request stays overdue: a new rate must not hide the wait so far.
  if (next_ > now) next_ = now + gap();
  pump();
}

void OpenLoop::stop() {
  next_ = kNever;
  timer_.cancel();
}

void OpenLoop::pump() {
  if (next_ == kNever) return;
  const TimePoint now = client_.timers().now();
  while (next_ <= now && in_flight() < options_.in_flight_max) {
    if (free_.empty()) {
      slots_.push_back(std::make_unique<Slot>(*this));
      free_.push_back(slots_.back().get());
    }
    Slot& slot = *free_.back();
    free_.pop_back();
    const TimePoint intended = next_;
    next_ += gap();
    // `full_` is from the pump() before: this request was due then and found no room.
    if (full_) ++counts_.delayed;
    slot.start(counts_.started++, intended);
  }
  full_ = next_ <= now;
  // When it is full, the next request that ends calls pump().
  if (!full_) timer_ = client_.timers().at(next_, [this] { pump(); });
}

void OpenLoop::ended(Slot& slot, bool ok) {
  ++(ok ? counts_.answered : counts_.failed);
  slot.observation.ended = client_.timers().precise_now();
  slot.observation.ok = ok;
  const Observation observation = slot.observation;
  // The slot is free before `observe` runs, and may be used again by pump(): hence the copy.
  free_.push_back(&slot);
  if (options_.observe) options_.observe(observation);
  pump();
}

}  // namespace tailward::load
