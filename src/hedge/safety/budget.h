// How much extra load hedging may cause: exact, counted in requests, without any guess of their
// rate.
//
// Every request deposits `share` of a token, every hedge takes a whole one. At every instant, under
// any stall, and whatever the order of calls:
//     hedges ≤ share × requests + burst
// That is arithmetic: the balance starts at `floor` ≤ burst, never exceeds burst and never goes
// below zero. `floor` is what lets an idle service hedge its first slow request. A hedge is
// admitted only while
//     hedges in flight ≤ in_flight_share × primaries in flight + in_flight_floor
// holds with it, so that a stall cannot spend the whole balance at once.
// (The deposit-and-withdraw form is Finagle's RetryBudget; unlike it nothing here expires with
// time.)
//
// Budgets form a chain, route → pool → process: a hedge is allowed only when all of them allow it,
// and a refusal by one takes nothing from the others.
//
// Thread safety: one loop. Ownership: the parent must outlive the child.
#pragma once

#include <cstdint>

namespace tailward::hedge {

struct BudgetConfig {
  double share = 0.05;  // extra requests per request; 1 or more: as many as the policy wants
  double burst = 10;    // tokens saved up at most
  double floor = 3;     // tokens at the start, ≤ burst
  double in_flight_share = 0.2;  // f
  double in_flight_floor = 3;    // the small constant
  // Neither bound applies: the experiments that show what hedging without a budget does.
  bool unlimited = false;
};

class Budget {
 public:
  explicit Budget(const BudgetConfig& config, Budget* parent = nullptr);

  // A request begins: deposits for it and counts its primary as in flight.
  void request_begins();
  void primary_ends();

  // Takes a token for a hedge and counts it as in flight, or refuses and changes nothing.
  [[nodiscard]] bool try_hedge();
  void hedge_ends();
  // Whether try_hedge() would take a token now; changes nothing.
  [[nodiscard]] bool could_hedge() const;

  [[nodiscard]] double balance() const { return static_cast<double>(balance_) / kToken; }
  [[nodiscard]] std::int64_t primaries_in_flight() const { return primaries_; }
  [[nodiscard]] std::int64_t hedges_in_flight() const { return hedges_; }
  [[nodiscard]] const BudgetConfig& config() const { return config_; }

 private:
  // A token in fixed point: sums of deposits are exact, so that the bound holds to the last hedge.
  static constexpr std::int64_t kToken = 1'000'000;
  [[nodiscard]] bool allows() const;

  BudgetConfig config_;
  Budget* parent_;
  std::int64_t deposit_;
  std::int64_t burst_;
  std::int64_t balance_;
  std::int64_t primaries_ = 0;
  std::int64_t hedges_ = 0;
};

}  // namespace tailward::hedge
