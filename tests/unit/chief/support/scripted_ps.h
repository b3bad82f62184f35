// A ps whose calls are parked until the test answers them.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "common/client/ps_client.h"

namespace lockstep::chief {

// The calls of one method: requests in order, each answered once.
template <typename Request, typename Reply>
class Calls {
 public:
  void Add(const Request& request, Done<Reply> done) {
    pending_.emplace_back(request, std::move(done));
    all_.push_back(request);
  }
  // Not yet answered.
  size_t size() const { return pending_.size(); }
  const Request& front() const { return pending_.front().first; }
  const Request& at(size_t i) const { return pending_[i].first; }
  const std::vector<Request>& all() const { return all_; }

  void Answer(absl::StatusOr<Reply> reply, size_t i = 0) {
    Done<Reply> done = std::move(pending_[i].second);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
    done(std::move(reply));
  }

 private:
  std::deque<std::pair<Request, Done<Reply>>> pending_;
  std::vector<Request> all_;
};

class ScriptedPs final : public PsControl {
 public:
  Calls<GetViewRequest, SetViewReply> get_view;
  Calls<SetViewRequest, SetViewReply> set_view;
  Calls<CreateVariablesRequest, CreateVariablesReply> create;
  Calls<GrantRequest, GrantReply> grants;
  Calls<CommitStepRequest, CommitStepReply> commits;
  Calls<SaveRequest, SaveReply> saves;
  Calls<ReleaseSnapshotRequest, ReleaseSnapshotReply> releases;
  Calls<FinishRequest, FinishReply> finishes;

  void GetView(Done<SetViewReply> done) override { get_view.Add({}, std::move(done)); }
  void SetView(const SetViewRequest& request, Done<SetViewReply> done) override {
    set_view.Add(request, std::move(done));
  }
  void CreateVariables(const CreateVariablesRequest& request,
                       Done<CreateVariablesReply> done) override {
    create.Add(request, std::move(done));
  }
  void Grant(const GrantRequest& request, Done<GrantReply> done) override {
    grants.Add(request, std::move(done));
  }
  void CommitStep(const CommitStepRequest& request, Done<CommitStepReply> done) override {
    commits.Add(request, std::move(done));
  }
  void Save(const SaveRequest& request, Done<SaveReply> done) override {
    saves.Add(request, std::move(done));
  }
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                       Done<ReleaseSnapshotReply> done) override {
    releases.Add(request, std::move(done));
  }
  void Finish(const FinishRequest& request, Done<FinishReply> done) override {
    finishes.Add(request, std::move(done));
  }
};

}  // namespace lockstep::chief
