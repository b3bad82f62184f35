// A ps whose calls are parked until the test answers them.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "common/base/callback.h"
#include "common/client/ps_control.h"
#include "tests/support/fake_service_client.h"

namespace lockstep::chief {

// The calls of one method: requests in order, each answered once.
template <typename Request, typename Reply>
class Calls {
 public:
  std::function<void(const Request&, Callback<Reply>)> handler() {
    return [this](const Request& request, Callback<Reply> done) {
      pending_.emplace_back(request, std::move(done));
      all_.push_back(request);
    };
  }
  // Not yet answered.
  size_t size() const { return pending_.size(); }
  const Request& front() const { return pending_.front().first; }
  const Request& at(size_t i) const { return pending_[i].first; }
  const std::vector<Request>& all() const { return all_; }

  void Answer(absl::StatusOr<Reply> reply, size_t i = 0) {
    Callback<Reply> done = std::move(pending_[i].second);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    done(std::move(reply));
  }

 private:
  std::deque<std::pair<Request, Callback<Reply>>> pending_;
  std::vector<Request> all_;
};

// A shard's answer to SetView once it has variables, at this step.
inline SetViewReply WithVariables(int64_t step = 0) {
  SetViewReply reply;
  reply.set_has_variables(true);
  reply.set_shard_step(step);
  reply.set_global_step(step);
  return reply;
}

class ScriptedPs final : public test::FakeServiceClient<PsControlService> {
 public:
  ScriptedPs() {
    Handle(kGetView, get_view.handler());
    Handle(kSetView, set_view.handler());
    Handle(kCreateVariables, create.handler());
    Handle(kGrant, grants.handler());
    Handle(kCommitStep, commits.handler());
    Handle(kSave, saves.handler());
    Handle(kReleaseSnapshot, releases.handler());
    Handle(kFinish, finishes.handler());
    Handle(kRenewLease, renewals.handler());
    Handle(kWatchCommand, watches.handler());
  }

  Calls<GetViewRequest, SetViewReply> get_view;
  Calls<SetViewRequest, SetViewReply> set_view;
  Calls<CreateVariablesRequest, CreateVariablesReply> create;
  Calls<GrantRequest, GrantReply> grants;
  Calls<CommitStepRequest, CommitStepReply> commits;
  Calls<SaveRequest, SaveReply> saves;
  Calls<ReleaseSnapshotRequest, ReleaseSnapshotReply> releases;
  Calls<FinishRequest, FinishReply> finishes;
  Calls<RenewLeaseRequest, RenewLeaseReply> renewals;
  Calls<WatchCommandRequest, WatchCommandReply> watches;
};

}  // namespace lockstep::chief
