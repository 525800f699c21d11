// How an experiment speaks with the one who runs it: what was asked for, progress, and Ctrl-C.
//
// Thread safety: one thread. The functions are called while the experiment runs; all may be empty.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/heap_count/heap_count.h"
#include "report/terminal.h"

namespace tailward::lab {

struct ArmResult;  // lab/hedging/arm.h

struct Context {
  std::uint64_t seed = 1;
  bool quick = false;
  int runs = 1;
  // Only the arms that tell the story, for `tailward demo`.
  bool story_only = false;
  // What the adaptive arm aims at and may spend, in an experiment that lets the user choose.
  std::optional<double> goal = {};
  std::optional<double> budget = {};
  // Called a few times a second while an arm runs.
  std::function<void(const report::Progress&)> progress = {};
  // Set by Ctrl-C. The experiment begins nothing further and returns what there is.
  bool interrupted = false;
  // Whether somebody has asked to stop. Unlike `interrupted`, it also notices a Ctrl-C between
  // arms.
  std::function<bool()> stop_asked = {};
  // The heap of this process, where the program counts it. `reset` starts a new peak.
  std::function<HeapUse(bool reset)> heap = {};
  // Called in front of each arm of a hedging experiment, and after it. `unhedged` is the arm that
  // the others are compared with, null until it has run. The arm has no verdict yet.
  std::function<void(const std::string& arm)> arm_begins = {};
  std::function<void(const ArmResult& arm, const ArmResult* unhedged)> arm_done = {};

  // Whether to stop now.
  bool stopped() {
    interrupted = interrupted || (stop_asked && stop_asked());
    return interrupted;
  }
};

}  // namespace tailward::lab
