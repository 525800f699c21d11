// The race of one request: a plain state machine.
//
// In: the request starts, an attempt ends, the timer is due, the caller is gone; and the time. Out:
// actions for the driver, to be carried out in their order: start an attempt on a host, cancel an
// attempt, arm the timer, finish the request. No I/O, no threads, no clock, no allocation.
//
// The rules, from docs/design/hedging.md:
//   - The first good answer wins. A bad one never ends the race while another attempt lives or may
//     still be started; it starts the next attempt at once where plan and budget allow. When all
//     have failed, the caller gets the best of the failures: one with an answer before one without,
//     the primary's first.
//   - A hedge goes to a host that this request has not used; where there is none it waits on.
//   - Pushback is obeyed: no hedge before its time, none at all when the server says so, never
//     after an "overloaded" answer.
//   - Losers are cancelled at once and are superseded: neither success nor failure for breaker and
//     hosts; a first attempt among them is a censored sample.
//   - Once finish was given, whatever still comes in is ignored: a caller that is gone at the
//     instant at which the timer is due wins, when the driver tells it first (drivers do).
//
// Thread safety: one loop, the route's. Ownership: the route must outlive the race. Destroying a
// race that is under way counts its attempts as cancelled; the driver cancels them itself by
// destroying them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"
#include "hedge/engine/request.h"
#include "hedge/engine/route.h"

namespace tailward::hedge {

// What a server said of further attempts.
struct Pushback {
  enum class Kind : std::uint8_t { kNone, kAfter, kNever };
  Kind kind = Kind::kNone;
  Duration after{};
};

// How an attempt ended, as far as the race is concerned: at the first useful byte of a good answer,
// at the head of a bad one, at a failure.
struct Outcome {
  enum class Class : std::uint8_t {
    kGood,
    kBad,      // 429, 500, 502, 503, 504, refused, reset before the first byte …
    kFatal,    // ends the race at once: no other attempt could do better
    kNotSent,  // a limit of our own kept it from being sent: nobody's failure, and no reason for
               // another
  };
  Class result = Class::kGood;
  bool has_response = true;  // the server said something that can be handed to the caller
  bool overloaded = false;   // 429, RESOURCE_EXHAUSTED: never hedge after it
  Pushback pushback = {};
};

struct Action {
  enum class Kind : std::uint8_t {
    kStart,   // send `attempt` to `host`
    kCancel,  // give `attempt` up and release all that it holds; must not wait
    kArm,     // call on_timer() at `at`, in place of any earlier arming; kNever: disarm
    kFinish,  // the last: the caller gets the answer of `attempt`, or none (kNoAttempt)
  };
  Kind kind;
  AttemptIndex attempt = kNoAttempt;
  HostIndex host = kNoHost;
  Ending ending = Ending::kAnswered;
  TimePoint at{};
};

// The actions of one call: at most a cancel for every attempt, a start, an arm and a finish.
class Actions {
 public:
  static constexpr std::size_t kMax = kAttemptsMax + 3;
  void push(const Action& action);
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const Action* begin() const { return actions_.data(); }
  [[nodiscard]] const Action* end() const { return actions_.data() + size_; }

 private:
  std::array<Action, kMax> actions_;
  std::size_t size_ = 0;
};

class Race {
 public:
  explicit Race(Route& route) : route_(&route) {}
  ~Race();
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;

  // REQUIRES: called first, once. The route has a host (otherwise the race finishes at once as
  // failed).
  [[nodiscard]] Actions start(const RequestInfo& request, TimePoint now);

  // `now` is when the answer came: a precise reading where the driver has one.
  [[nodiscard]] Actions on_outcome(AttemptIndex attempt, const Outcome& outcome, TimePoint now);
  [[nodiscard]] Actions on_timer(TimePoint now);
  [[nodiscard]] Actions on_caller_gone(TimePoint now);

  [[nodiscard]] bool finished() const { return state_ == State::kFinished; }
  [[nodiscard]] int attempts() const { return ticket_.attempts; }
  [[nodiscard]] bool running(AttemptIndex attempt) const {
    return attempt < ticket_.attempts && runners_[attempt].state == Runner::State::kRunning;
  }

 private:
  enum class State : std::uint8_t { kIdle, kRunning, kFinished };
  struct Runner {
    enum class State : std::uint8_t {
      kUnused,
      kRunning,
      kHeld,  // failed, its response kept
      kOver,
    };
    State state = State::kUnused;
    Attempt attempt;
  };

  // The hosts that this request has used, in `used`.
  [[nodiscard]] std::span<const HostIndex> used_hosts(
      std::array<HostIndex, kAttemptsMax>& used) const;
  void begin(const Attempt& attempt, Actions& out);
  [[nodiscard]] bool try_hedge(bool after_failure, TimePoint now, Actions& out);
  // Why this request may not be hedged now, whatever its route says.
  [[nodiscard]] std::optional<Denied> refused(TimePoint now) const;
  void run_due_stage(TimePoint now, Actions& out);
  void go_on_after_failure(TimePoint now, Actions& out);
  void end_attempt(AttemptIndex index, AttemptEnd end, TimePoint now);
  // All running attempts but one, and the responses that are held.
  void end_all(AttemptEnd end, AttemptIndex except, TimePoint now, Actions& out);
  [[nodiscard]] bool worth_waiting_for(TimePoint now);
  [[nodiscard]] bool held_has_response() const { return held_rank_ >= 2; }
  void hold_or_release(AttemptIndex index, bool has_response, Actions& out);
  void obey(const Outcome& outcome, TimePoint now);
  void finish(Ending ending, AttemptIndex winner, TimePoint now, Actions& out);
  void arm(Actions& out);
  [[nodiscard]] bool anything_running() const;
  [[nodiscard]] bool stages_left() const;
  [[nodiscard]] TimePoint next_stage_at() const;

  Route* route_;
  State state_ = State::kIdle;
  std::uint8_t next_stage_ = 0;
  bool no_more_ = false;             // a server asked for no further attempt
  bool waits_for_pushback_ = false;  // nothing runs, the next attempt starts at not_before_
  int held_rank_ = -1;
  AttemptIndex held_ = kNoAttempt;
  RequestInfo request_;
  TimePoint last_stage_at_{};
  TimePoint not_before_{};
  TimePoint armed_at_ = kNever;
  Ticket ticket_;  // the route's
  std::array<Runner, kAttemptsMax> runners_{};
};

}  // namespace tailward::hedge
