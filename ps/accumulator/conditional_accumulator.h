// TensorFlow's conditional accumulator of one variable, without the arithmetic: it holds the
// gradients that count, judges new ones, and gives up all that it holds as one step. The sum is
// made in the pass that applies it (common/update).
//
// A gradient is stale when it was computed from an older step than the accumulator is at. Equal
// and future local steps are fresh. In an asynchronous job every gradient is a step of its own,
// taken in the order of arrival.
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/update/gradient.h"
#include "ps/accumulator/push_status.h"

namespace lockstep::ps {

struct HeldGradient {
  WorkerIndex worker;
  PushSeq push_seq;
  GlobalStep local_step;
  Gradient gradient;
  Incarnation incarnation = {};  // of the worker
};

struct TakenGradients {
  GlobalStep step;                      // that they close
  std::vector<HeldGradient> gradients;  // in the order of summation
  int divisor = 1;                      // of their sum
};

// Which gradients count.
struct CountRule {
  enum Kind {
    kEveryGradient,   // TensorFlow's: one replica may count twice
    kOncePerReplica,  // once per step and variable, whichever incarnation sent it
    kOneByOne,        // asynchronous: each gradient is a step of its own, in the order of arrival
  };

  CountRule(Kind kind) : kind(kind) {}

  Kind kind;
  // One by one: a gradient is stale when more than `max_staleness` others have been taken since its
  // local step or wait to be taken before it, or when no step is left for it before `end`; never
  // when these are not given.
  std::optional<int64_t> max_staleness = {};
  std::optional<GlobalStep> end = {};
};

class ConditionalAccumulator {
 public:
  ConditionalAccumulator(CountRule rule, GlobalStep step) : rule_(rule), step_(step) {}

  // Gradients that count now are of this step.
  GlobalStep global_step() const { return step_; }
  // Gradients held already stay and count.
  void SetGlobalStep(GlobalStep step) { step_ = step; }

  bool IsStale(GlobalStep local_step) const;
  // Whether the replica has been counted in this step and cannot be again.
  bool HasCounted(WorkerIndex worker) const;
  // Holds a gradient that is fresh. One that is kStale is left to the caller. The replica has not
  // been counted (CHECK).
  PushStatus Apply(HeldGradient&& gradient);

  int num_accumulated() const { return static_cast<int>(held_.size()); }
  // In the order (worker, push_seq); one by one, in the order of arrival.
  const std::vector<HeldGradient>& held() const { return held_; }
  // The replica's, where each counts once; nullptr: there is none.
  const HeldGradient* Find(WorkerIndex worker) const;
  // The same, no longer held: the replica can be counted again.
  std::optional<HeldGradient> Remove(WorkerIndex worker);

  // Once at least `required` gradients are held: takes all of them, even more than required, or,
  // one by one, the first. The step moves to the next.
  std::optional<TakenGradients> Take(uint32_t required);

 private:
  CountRule rule_;
  GlobalStep step_;
  std::vector<HeldGradient> held_;
};

}  // namespace lockstep::ps
