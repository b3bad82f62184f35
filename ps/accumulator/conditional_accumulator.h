// TensorFlow's conditional accumulator, without the arithmetic: which gradients count, when a take
// is satisfied, how the step moves. A derived class sums gradients of one kind (dense, sparse).
//
// A pure state machine: whatever a call completes comes back as a result, for the caller to pass on
// outside its locks. Counting a gradient and handing the sum to a waiting take is one action, one
// of the interleavings that TensorFlow allows.
//
// Not thread-safe.
#pragma once

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "ps/accumulator/staleness.h"
#include "ps/accumulator/take_queue.h"

namespace lockstep::ps {

enum class Reduction { kMean, kSum };

// `GradientView` is what is pushed, `Gradient` what is taken.
template <typename GradientView, typename Gradient>
class ConditionalAccumulator {
 public:
  struct FinishedTake {
    TakeId id;
    int count = 0;                      // gradients in the result; the divisor of a mean
    absl::StatusOr<Gradient> gradient;  // CANCELLED after Cancel
  };
  struct Applied {
    bool accepted = false;  // false: stale, and nothing else was looked at
    std::vector<FinishedTake> finished;
  };
  enum class StepChange {
    kSet,
    kLowered,  // unusual, worth a warning: gradients of a past that is gone will count
  };

  explicit ConditionalAccumulator(Reduction reduction) : reduction_(reduction) {}
  virtual ~ConditionalAccumulator() = default;
  ConditionalAccumulator(const ConditionalAccumulator&) = delete;
  ConditionalAccumulator& operator=(const ConditionalAccumulator&) = delete;

  // INVALID_ARGUMENT, changing nothing, for a gradient that is fresh and does not fit.
  absl::StatusOr<Applied> Apply(GlobalStep local_step, const GradientView& gradient) {
    if (IsStale(local_step, global_step_)) return Applied{};
    LOCKSTEP_RETURN_IF_ERROR(Validate(gradient));
    if (count_ == 0) {
      Start(gradient);
    } else {
      Add(gradient);
    }
    ++count_;
    return Applied{true, Flush()};
  }

  // Asks for the reduction of everything accumulated, as soon as that is at least `required`
  // gradients. Returns what is finished now, this take or none. INVALID_ARGUMENT: `required` is not
  // positive.
  absl::StatusOr<std::vector<FinishedTake>> Take(TakeId id, int required) {
    if (required <= 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("Argument num_required must be positive, but was ", required));
    }
    takes_.Add(id, required);
    return Flush();
  }

  // Ends a waiting take, which consumes nothing; what stood behind it may be satisfied now. Nothing
  // is finished when the take is not waiting.
  std::vector<FinishedTake> Cancel(TakeId id) {
    std::vector<FinishedTake> finished;
    if (!takes_.Remove(id)) return finished;
    finished.push_back({id, 0, absl::CancelledError("the take was cancelled")});
    for (FinishedTake& take : Flush()) finished.push_back(std::move(take));
    return finished;
  }

  // Gradients accepted before stay in the sum; waiting takes stay as they are.
  StepChange SetGlobalStep(GlobalStep step) {
    const StepChange change = step < global_step_ ? StepChange::kLowered : StepChange::kSet;
    global_step_ = step;
    return change;
  }

  GlobalStep global_step() const { return global_step_; }
  // Gradients accepted since the last take.
  int num_accumulated() const { return count_; }
  int num_waiting() const { return takes_.size(); }

 protected:
  Reduction reduction() const { return reduction_; }

 private:
  // Whether the gradient fits the declaration and, when there is one, the sum.
  virtual absl::Status Validate(const GradientView& gradient) const = 0;
  // The first gradient after a take, and further ones.
  virtual void Start(const GradientView& gradient) = 0;
  virtual void Add(const GradientView& gradient) = 0;
  // Gives up the sum of `count` gradients, reduced.
  virtual Gradient Finish(int count) = 0;

  std::vector<FinishedTake> Flush() {
    std::vector<FinishedTake> finished;
    while (const std::optional<TakeId> id = takes_.PopSatisfied(count_)) {
      global_step_ = global_step_.next();
      finished.push_back({*id, count_, Finish(count_)});
      count_ = 0;
    }
    return finished;
  }

  const Reduction reduction_;
  GlobalStep global_step_;
  int count_ = 0;
  TakeQueue takes_;
};

}  // namespace lockstep::ps
