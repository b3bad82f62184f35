// WaitingAccumulator adds TensorFlow's other features to our accumulator: takes that wait or are
// cancelled, sums in place of means, validation with TensorFlow's error texts.
// ps::ConditionalAccumulator alone decides which gradients count, when they are taken and how the
// step moves. A derived class has gradients of one kind (dense, sparse).
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
#include "ps/accumulator/conditional_accumulator.h"
#include "tests/reference/take_queue.h"

namespace lockstep::reference {

enum class Reduction { kMean, kSum };

// `GradientView` is the type that is pushed, `Reduced` the type that is taken.
template <typename GradientView, typename Reduced>
class WaitingAccumulator {
 public:
  struct FinishedTake {
    TakeId id;
    int count = 0;                     // gradients in the result; the divisor of a mean
    absl::StatusOr<Reduced> gradient;  // CANCELLED after Cancel
  };
  struct Applied {
    bool accepted = false;  // false: stale, and nothing else was looked at
    std::vector<FinishedTake> finished;
  };
  enum class StepChange {
    kSet,
    kLowered,  // unusual, worth a warning: gradients of a past that is gone will count
  };

  explicit WaitingAccumulator(Reduction reduction) : reduction_(reduction) {}
  virtual ~WaitingAccumulator() = default;
  WaitingAccumulator(const WaitingAccumulator&) = delete;
  WaitingAccumulator& operator=(const WaitingAccumulator&) = delete;

  // INVALID_ARGUMENT, changing nothing, for a gradient that is fresh and does not fit.
  absl::StatusOr<Applied> Apply(GlobalStep local_step, const GradientView& gradient) {
    if (accumulator_.IsStale(local_step)) return Applied{};
    LOCKSTEP_RETURN_IF_ERROR(Validate(gradient));
    // Summed in the order of arrival.
    const ps::PushStatus status =
        accumulator_.Apply({WorkerIndex(), PushSeq(++num_pushes_), local_step, CopyOf(gradient)});
    return Applied{status == ps::PushStatus::kAccepted, Flush()};
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

  // Ends a waiting take, which consumes nothing; takes behind it may be satisfied now. Returns none
  // if the take is not waiting.
  std::vector<FinishedTake> Cancel(TakeId id) {
    std::vector<FinishedTake> finished;
    if (!takes_.Remove(id)) return finished;
    finished.push_back({id, 0, absl::CancelledError("the take was cancelled")});
    for (FinishedTake& take : Flush()) finished.push_back(std::move(take));
    return finished;
  }

  // Gradients accepted before stay in the sum; waiting takes stay as they are.
  StepChange SetGlobalStep(GlobalStep step) {
    const StepChange change =
        step < accumulator_.global_step() ? StepChange::kLowered : StepChange::kSet;
    accumulator_.SetGlobalStep(step);
    return change;
  }

  GlobalStep global_step() const { return accumulator_.global_step(); }
  // Gradients accepted since the last take.
  int num_accumulated() const { return accumulator_.num_accumulated(); }
  int num_waiting() const { return takes_.size(); }

 protected:
  Reduction reduction() const { return reduction_; }
  // The first gradient accepted since the last take. There is one.
  const Gradient& first() const { return accumulator_.held().front().gradient; }

 private:
  // Checks that the gradient fits the declaration and, if there is one, the first gradient.
  virtual absl::Status Validate(const GradientView& gradient) const = 0;
  virtual Gradient CopyOf(const GradientView& gradient) const = 0;
  virtual Reduced Reduce(ps::TakenGradients taken) const = 0;

  std::vector<FinishedTake> Flush() {
    std::vector<FinishedTake> finished;
    while (const TakeQueue::Take* const take = takes_.front()) {
      auto taken = accumulator_.Take(static_cast<uint32_t>(take->required));
      if (!taken.has_value()) break;
      const TakeId id = take->id;
      takes_.PopFront();
      const int count = taken->divisor;
      finished.push_back({id, count, Reduce(*std::move(taken))});
    }
    return finished;
  }

  const Reduction reduction_;
  ps::ConditionalAccumulator accumulator_{ps::CountRule::kEveryGradient, GlobalStep(0)};
  uint64_t num_pushes_ = 0;
  TakeQueue takes_;
};

}  // namespace lockstep::reference
