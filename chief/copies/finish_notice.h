// Tells the place of a shard that does not serve that the job is over, again until it answers. A
// process that does not hear it would wait for a chief. The caller of the pair tells the one that
// serves.
//
// Lives on the executor's thread.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "chief/copies/pair_roles.h"
#include "chief/copies/place.h"
#include "chief/loop/executor.h"
#include "chief/sync/retry.h"
#include "common/base/clock.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

class FinishNotice {
 public:
  // What is pointed to outlives the calls under way, and so does this.
  FinishNotice(PairRoles* roles, Executor* executor, const Clock* clock);

  // Does nothing where it has begun.
  void Begin(const FinishRequest& request);
  // Another epoch begins.
  void Stop() { request_.reset(); }
  bool has_begun() const { return request_.has_value(); }
  // Several times a second.
  void Tick();

  // The place that has not answered, and why; empty: there is none.
  std::string DescribeWaiting() const;

 private:
  struct Told {
    Retry retry;
    bool has_answered = false;
    absl::Status problem;
  };

  void Send(PlaceIndex place);
  void OnAnswer(PlaceIndex place, const absl::Status& status);
  // The place that is to be told; nullopt: none.
  std::optional<PlaceIndex> Untold() const;

  PairRoles* const roles_;
  Executor* const executor_;
  const Clock* const clock_;
  std::optional<FinishRequest> request_;
  std::array<Told, kNumPlaces> told_;  // who serves may change
};

}  // namespace lockstep::chief
