// One step of one shard after another: what the chief has granted, which variables have been taken
// and published. Each variable's gradients are in its conditional accumulator; the arithmetic is in
// common/update.
//
// A gradient counts when its variable has arrived whole and the variable's accumulator accepts it.
// The accumulator holds it until the step's grant asks for no more than there are. A late grant may
// find more than it requires: all of them are averaged, as TensorFlow does when its chief is late.
//
// A local_step above the variable's step is fresh by TensorFlow's rule and counts for the step at
// hand. Among peers that follow the protocol there is none: it is a token, a token s + 1 is made
// after every shard has closed s, and surplus tokens (FIFO) carry steps that are over.
//
// In an asynchronous job every gradient is a step of its own, taken in the order of arrival. A
// variable is then at most one step ahead of the others of the shard: a gradient that comes for it
// before is held until they have followed. No more are held than there are steps to the end.
//
// A step waits for the variables that get gradients in it (GradientTurns). The others count as
// taken and published from its beginning.
//
// Variables close independently. Each then belongs to the thread that asked to close it until it
// reports Published; the step is over when all have. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/turns/gradient_turns.h"
#include "ps/accumulator/conditional_accumulator.h"

namespace lockstep::ps {

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
struct TakenVariable {
  size_t variable = 0;
  float learning_rate = 0;
  TakenGradients taken;
};

class StepMachine {
 public:
  StepMachine(GradientTurns turns, GlobalStep start, CountRule rule);

  const GradientTurns& turns() const { return turns_; }
  // Whether the step at hand waits for the variable.
  bool Expects(size_t variable) const { return turns_.Expects(step_, variable); }

  // First step that is not over.
  GlobalStep shard_step() const { return step_; }
  // First step for which a variable still takes gradients; the one before may be under way.
  GlobalStep open_step() const;
  // Where the variable is: gradients that count for it now are of this step.
  GlobalStep StepOf(size_t variable) const {
    return variables_[variable].accumulator.global_step();
  }
  const ConditionalAccumulator& accumulator(size_t variable) const {
    return variables_[variable].accumulator;
  }
  // As ConditionalAccumulator, with a gradient that has arrived whole.
  PushStatus Apply(size_t variable, HeldGradient&& gradient) {
    return variables_[variable].accumulator.Apply(std::move(gradient));
  }
  std::optional<HeldGradient> Remove(size_t variable, WorkerIndex worker) {
    return variables_[variable].accumulator.Remove(worker);
  }
  // Has been taken in the step at hand; its update may still be under way.
  bool IsTaken(size_t variable) const { return StepOf(variable) > step_; }

  enum class Granted { kOver, kCurrent, kNext };
  // Grants may be given for the step at hand and the one after it; given again, the newer terms
  // hold (what has been asked to be kept stays so). INVALID_ARGUMENT: nothing required.
  // FAILED_PRECONDITION: a step further ahead.
  absl::StatusOr<Granted> Grant(GlobalStep step, const GrantTerms& terms);
  // Withdraws the grants; what has been taken stays taken.
  void Revoke();
  // No step needs more gradients than these, whatever is granted. TakeReady afterwards.
  void LimitRequired(uint32_t most) { most_required_ = most; }
  const std::optional<GrantTerms>& terms() const { return current_; }

  // A range of the variable is made before its gradients are whole: while any is under way the
  // variable is not taken. Begins with a grant, and not when it has been taken (CHECK).
  void BeginEarly(size_t variable);
  void EndEarly(size_t variable);
  // Takes the variable's gradients when the grant is there and they suffice.
  std::optional<TakenVariable> TryTake(size_t variable);
  // The same for all variables.
  std::vector<TakenVariable> TakeReady();
  // The variable's new version is readable.
  void Published(size_t variable);
  // Variables of the step at hand whose new version is not readable.
  size_t num_open() const { return open_; }
  bool IsComplete() const { return current_.has_value() && open_ == 0; }
  // Nothing of the step at hand has been taken, in whole or in part: each variable has the version
  // that the step began with.
  bool IsUntouched() const;
  // No variable ever takes gradients: every step that is granted is complete.
  bool IsEmpty() const;
  // No variable is between its take and its publication.
  bool IsQuiet() const;
  // Goes on to the next step, for which a grant may have come already. IsComplete (CHECK).
  void Advance();
  // Begins anew at `step`, without a grant. Before any gradient (CHECK).
  void RestartAt(GlobalStep step);

 private:
  struct VariableStep {
    ConditionalAccumulator accumulator;
    int early = 0;  // ranges that are being made
  };

  // Opens the variables that the step at hand waits for.
  void OpenVariables();

  const GradientTurns turns_;
  GlobalStep step_;
  std::vector<VariableStep> variables_;
  uint32_t most_required_ = std::numeric_limits<uint32_t>::max();
  size_t open_ = 0;  // variables that are not yet published in this step
  std::optional<GrantTerms> current_;
  std::optional<GrantTerms> next_;
};

}  // namespace lockstep::ps
