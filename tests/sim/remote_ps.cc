#include "tests/sim/remote_ps.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::sim {
namespace {

class RemoteControl final : public PsControl {
 public:
  RemoteControl(PsControl* ps, Network* network) : ps_(ps), network_(network) {}

  void GetView(Done<SetViewReply> done) override {
    network_->Call<SetViewReply>(
        [ps = ps_](Done<SetViewReply> answer) { ps->GetView(std::move(answer)); }, std::move(done));
  }
  void SetView(const SetViewRequest& request, Done<SetViewReply> done) override {
    Call(&PsControl::SetView, request, std::move(done));
  }
  void CreateVariables(const CreateVariablesRequest& request,
                       Done<CreateVariablesReply> done) override {
    Call(&PsControl::CreateVariables, request, std::move(done));
  }
  void Grant(const GrantRequest& request, Done<GrantReply> done) override {
    Call(&PsControl::Grant, request, std::move(done));
  }
  void CommitStep(const CommitStepRequest& request, Done<CommitStepReply> done) override {
    Call(&PsControl::CommitStep, request, std::move(done));
  }
  void Save(const SaveRequest& request, Done<SaveReply> done) override {
    Call(&PsControl::Save, request, std::move(done));
  }
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                       Done<ReleaseSnapshotReply> done) override {
    Call(&PsControl::ReleaseSnapshot, request, std::move(done));
  }
  void Finish(const FinishRequest& request, Done<FinishReply> done) override {
    Call(&PsControl::Finish, request, std::move(done));
  }

 private:
  template <typename Request, typename Reply>
  void Call(void (PsControl::*method)(const Request&, Done<Reply>), const Request& request,
            Done<Reply> done) {
    network_->Call<Reply>([ps = ps_, method, request](
                              Done<Reply> answer) { (ps->*method)(request, std::move(answer)); },
                          std::move(done));
  }

  PsControl* const ps_;
  Network* const network_;
};

class RemoteData final : public PsData {
 public:
  RemoteData(PsData* ps, Network* network) : ps_(ps), network_(network) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Done<PushReply> done) override {
    Send(&PsData::Push, header, payload, std::move(done));
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Done<PushPullReply> done) override {
    Send(&PsData::PushPull, header, payload, std::move(done));
  }
  void Pull(const PullRequest& request, Done<std::unique_ptr<PulledValues>> done) override {
    network_->Call<std::unique_ptr<PulledValues>>(
        [ps = ps_, request](Done<std::unique_ptr<PulledValues>> answer) {
          ps->Pull(request, std::move(answer));
        },
        std::move(done));
  }
  void DequeueToken(const DequeueTokenRequest& request, Done<DequeueTokenReply> done) override {
    network_->Call<DequeueTokenReply>(
        [ps = ps_, request](Done<DequeueTokenReply> answer) {
          ps->DequeueToken(request, std::move(answer));
        },
        std::move(done));
  }
  void Cancel() override {}

 private:
  template <typename Reply>
  void Send(void (PsData::*method)(const PushRequest&, std::vector<std::span<const std::byte>>,
                                   Done<Reply>),
            const PushRequest& header, const std::vector<std::span<const std::byte>>& payload,
            Done<Reply> done) {
    // The sender may die while its bytes are on their way.
    auto bytes = std::make_shared<std::vector<std::byte>>();
    for (const auto& part : payload) bytes->insert(bytes->end(), part.begin(), part.end());
    network_->Call<Reply>(
        [ps = ps_, method, header, bytes](Done<Reply> answer) {
          (ps->*method)(header, {std::span(*bytes)},
                        [bytes, answer](absl::StatusOr<Reply> reply) { answer(std::move(reply)); });
        },
        std::move(done));
  }

  PsData* const ps_;
  Network* const network_;
};

}  // namespace

std::unique_ptr<PsControl> MakeRemoteControl(PsControl* ps, Network* network) {
  return std::make_unique<RemoteControl>(ps, network);
}

std::unique_ptr<PsData> MakeRemoteData(PsData* ps, Network* network) {
  return std::make_unique<RemoteData>(ps, network);
}

}  // namespace lockstep::sim
