// Decides when a step of the shard may close, what it keeps, and who waits for it. The chief's
// grants order the steps. In an asynchronous job (async_driver.cc) each gradient is a step, and
// grants only name versions to keep.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/limits.h"
#include "ps/shard/deferred_callbacks.h"
#include "ps/shard/gradient_receiver.h"
#include "ps/shard/snapshot_store.h"
#include "ps/shard/stored_version.h"
#include "ps/shard/token_server.h"

namespace lockstep::ps {

// Something to be done as soon as nothing is being applied.
struct Milestone {
  GrantTerms terms;  // what is to be kept
  bool closes_step;  // otherwise it keeps what there is
};

// Guarded by the shard's lock.
class StepDriver {
 public:
  // All outlive the driver.
  struct Owners {
    const EpochVariables* variables;
    StepMachine* step;
    TokenServer* tokens;  // null but at the step shard
    SnapshotStore* snapshots;
    const VersionsToStore* to_store;
    const PushCounts* counts;
  };

  // `end`: the step at which an asynchronous shard stops; nullopt: the chief says when.
  static std::unique_ptr<StepDriver> Create(const Owners& owners, std::optional<GlobalStep> end);
  virtual ~StepDriver() = default;

  // Answers or parks `done`, unless it returns an error.
  absl::Status Park(const GrantArguments& arguments, Callback<ClosedStep>* done,
                    DeferredCallbacks* deferred);
  void FailGrants(const absl::Status& status, DeferredCallbacks* deferred);
  // Another chief commands.
  void EndTerm(const absl::Status& status, DeferredCallbacks* deferred);
  // Withdraws the grant: no further step begins.
  virtual void EndEpoch() { owners_.step->Revoke(); }

  // A step begins.
  virtual void BeginStep() {}
  virtual void OnTaken(const TakenVariable&) {}
  void AddStatistic(SmallStatistic statistic) { statistics_.push_back(std::move(statistic)); }
  // What the caller is to do now, under the lock.
  std::optional<Milestone> NextMilestone() const;
  // The step has closed: answers its grant, with the error if it was to be committed and was not.
  void AnswerClosed(GlobalStep step, const absl::Status& committed, DeferredCallbacks* deferred);
  // What there is has been kept, or null.
  virtual void AnswerKept(const std::shared_ptr<const Snapshot>&, DeferredCallbacks*) {}

  // A step may change the newest version without a further grant.
  virtual bool IsBusy() const { return owners_.step->terms().has_value(); }
  // The last step has been applied. Only of an asynchronous job.
  virtual bool has_stopped() const { return false; }
  virtual std::vector<uint64_t> staleness() const { return {}; }

 protected:
  struct ParkedGrant {
    GlobalStep step;
    Callback<ClosedStep> done;
    // Of an asynchronous job.
    GrantTerms keeps = {};
    bool now = false;   // keeps the newest values, of whatever step
    bool last = false;  // and then the shard stops
  };

  explicit StepDriver(const Owners& owners) : owners_(owners) {}
  virtual absl::Status ParkGrant(const GrantArguments& arguments, Callback<ClosedStep>* done,
                                 DeferredCallbacks* deferred);
  // As NextMilestone, while no step is complete.
  virtual std::optional<Milestone> MilestoneOfOpenStep() const { return std::nullopt; }
  // The parked grant of the step, if there is one, is answered UNAVAILABLE.
  void CancelGrant(GlobalStep step, DeferredCallbacks* deferred);
  // The answer to a grant of a step that is over.
  ClosedStep ClosedNow(GlobalStep step) const;

  const Owners owners_;
  std::vector<ParkedGrant> grants_;  // at most one per step

 private:
  // A chief keeps no more grants parked.
  static constexpr size_t kRecentSteps = limits::kMaxParkedGrants;
  static size_t IndexOf(GlobalStep step) {
    return static_cast<uint64_t>(step.value()) % kRecentSteps;
  }
  struct StepStatistics {
    GlobalStep step;
    std::vector<SmallStatistic> statistics;
  };

  std::vector<SmallStatistic> statistics_;  // of the step at hand
  // Of the newest steps, each at its IndexOf: a chief that has lost the answers to its parked
  // grants asks for all of them again.
  std::array<StepStatistics, kRecentSteps> recent_statistics_;
};

}  // namespace lockstep::ps
