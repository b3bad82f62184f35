// One step of one shard after another: which gradients are held for it, what the chief has granted,
// which variables have closed. The arithmetic is in dense_update.h and close_rows.h.
//
// A gradient counts when its variable has arrived whole and is fresh. It is held until the step's
// grant asks for no more than there are; then everything held is taken, in the order (worker,
// push_seq), whatever the order of arrival. A late grant may find more than it requires: all of
// them are averaged, as TensorFlow does when its chief is late.
//
// A stamp above the variable's step is fresh by TensorFlow's rule and counts for the step at hand.
// Among peers that follow the protocol there is none: a stamp is a token, a token s + 1 is made
// after every shard has closed s, and surplus tokens (FIFO) carry steps that are over.
//
// In an asynchronous job every gradient is a step of its own, taken in the order of arrival. A
// variable is then at most one step ahead of the others of the shard: a gradient that comes for it
// before is held until they have followed. No more are held than there are steps to the end.
//
// Variables close independently. Each then belongs to the thread that asked to close it until it
// reports Published; the step is over when all have. Pure; not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/tensor/tensor.h"
#include "common/update/gradient_parts.h"

namespace lockstep::ps {

struct HeldGradient {
  WorkerIndex worker;
  PushSeq push_seq;
  GlobalStep local_step;
  Tensor value;
  // Of a sparse variable: the rows of the slices in `value`. None: these are packed with them, as
  // bytes (common/tensor/packed_rows.h).
  Tensor indices = {};
  // Of a dense variable, in place of `value`: it lies where it was received.
  std::shared_ptr<GradientParts> parts = nullptr;
};

// What the chief ordered for a step.
struct GrantTerms {
  uint32_t required = 1;  // gradients per variable
  float learning_rate = 0;
  bool keep_values = false;
  bool keep_slots = false;
  bool commit = false;
  bool last = false;
};

// A variable whose gradients have been taken: to be summed, applied and published.
struct TakenGradients {
  size_t variable = 0;
  GlobalStep step;
  uint32_t required = 1;
  float learning_rate = 0;
  std::vector<HeldGradient> gradients;  // in the order of summation
};

enum class CountRule {
  kEveryGradient,   // TensorFlow's: one replica may count twice
  kOncePerReplica,  // once per step and variable, whichever incarnation sent it
  kOneByOne,        // asynchronous: each gradient is a step of its own, in the order of arrival
};

class StepMachine {
 public:
  // One by one, a gradient is stale when more than `max_staleness` others have been taken since its
  // stamp or wait to be taken before it, or when there is no step left for it before `end`; never
  // when these are not given.
  StepMachine(size_t num_variables, GlobalStep start, CountRule rule,
              std::optional<int64_t> max_staleness = {}, std::optional<GlobalStep> end = {});

  // The variable gets no gradients and is not waited for: it counts as taken and published in every
  // step. Before the first gradient and grant.
  void Freeze(size_t variable);

  // First step that is not over.
  GlobalStep shard_step() const { return step_; }
  bool IsStale(size_t variable, GlobalStep local_step) const;
  // Where the variable is: gradients that count for it now are of this step.
  GlobalStep StepOf(size_t variable) const { return variables_[variable].step; }
  // Whether the replica has been counted in the variable's step and cannot be again.
  bool IsCounted(size_t variable, WorkerIndex worker) const;
  // A whole gradient that is fresh and not counted yet (CHECK).
  void Hold(size_t variable, HeldGradient gradient);
  const std::vector<HeldGradient>& Held(size_t variable) const { return variables_[variable].held; }
  // The replica's, where each counts once per step; nullptr: there is none.
  const HeldGradient* FindHeld(size_t variable, WorkerIndex worker) const;
  // Has been taken in the step at hand; its update may still be under way.
  bool IsTaken(size_t variable) const { return StepOf(variable) > step_; }

  enum class Granted { kOver, kCurrent, kNext };
  // Grants may be given for the step at hand and the one after it; given again, the newer terms
  // hold (what has been asked to be kept stays so). INVALID_ARGUMENT: nothing required.
  // FAILED_PRECONDITION: a step further ahead.
  absl::StatusOr<Granted> Grant(GlobalStep step, const GrantTerms& terms);
  // Withdraws the grants; what has been taken stays taken.
  void Revoke();
  const std::optional<GrantTerms>& terms() const { return current_; }

  // A range of the variable is made before its gradients are whole: while any is under way the
  // variable is not taken. Begins with a grant, and not when it has been taken (CHECK).
  void BeginEarly(size_t variable);
  void EndEarly(size_t variable);
  // Takes the variable's gradients when the grant is there and they suffice.
  std::optional<TakenGradients> TryClose(size_t variable);
  // The same for all variables.
  std::vector<TakenGradients> CloseReady();
  // The variable's new version is readable.
  void Published(size_t variable);
  bool IsComplete() const { return current_.has_value() && open_ == 0; }
  // Nothing of the step at hand has been taken, in whole or in part: each variable has the version
  // that the step began with.
  bool IsUntouched() const;
  // No variable takes gradients: every step that is granted is complete.
  bool IsEmpty() const { return per_step_ == 0; }
  // No variable is between its take and its publication.
  bool IsQuiet() const;
  // Goes on to the next step, for which a grant may have come already. IsComplete (CHECK).
  void Advance();

 private:
  struct VariableStep {
    GlobalStep step;
    std::vector<HeldGradient> held;
    bool is_frozen = false;
    int early = 0;  // ranges that are being made
  };

  const CountRule rule_;
  const std::optional<int64_t> max_staleness_;
  const std::optional<GlobalStep> end_;
  GlobalStep step_;
  std::vector<VariableStep> variables_;
  size_t per_step_;  // variables that are not frozen
  size_t open_;      // of them, not yet published in this step
  std::optional<GrantTerms> current_;
  std::optional<GrantTerms> next_;
};

}  // namespace lockstep::ps
