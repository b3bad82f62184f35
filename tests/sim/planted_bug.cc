#include "tests/sim/planted_bug.h"

#include <google/protobuf/message.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::sim {
namespace {

// The token that is lost is not the first one: the job has begun.
constexpr int kLostToken = 3;

using Payload = std::vector<std::span<const std::byte>>;

class FaultyControl final : public PsControl {
 public:
  FaultyControl(PsControl* ps, PlantedBug bug) : ps_(ps), bug_(bug) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    const auto forged = std::shared_ptr<google::protobuf::Message>(
        static_cast<const google::protobuf::Message&>(request).New());
    forged->CopyFrom(static_cast<const google::protobuf::Message&>(request));
    if (bug_ == PlantedBug::kSharedTerm) ShareTerm(forged.get());
    auto* const view = dynamic_cast<SetViewRequest*>(forged.get());
    if (view != nullptr && bug_ == PlantedBug::kOldView) RenumberView(view);
    ps_->Start(method, *forged, reply,
               [this, forged, view, done = std::move(done)](absl::Status status) mutable {
                 if (view != nullptr && status.ok()) last_ = *view;
                 done(std::move(status));
               });
  }

 private:
  // Whoever commands with the shard's term passes for the chief that has set it.
  void ShareTerm(google::protobuf::Message* request) const {
    const auto* const field = request->GetDescriptor()->FindFieldByName("command");
    if (field == nullptr) return;
    auto* const command =
        static_cast<Command*>(request->GetReflection()->MutableMessage(request, field));
    if (command->term() == last_.command().term()) command->set_chief(last_.command().chief());
  }
  void RenumberView(SetViewRequest* view) const {
    if (view->command().term() == last_.command().term() && view->number() < last_.number()) {
      view->set_number(last_.number());
    }
  }

  PsControl* const ps_;
  const PlantedBug bug_;
  SetViewRequest last_;  // accepted
};

class FaultyData final : public PsData {
 public:
  FaultyData(PsData* ps, PlantedBug bug) : ps_(ps), bug_(bug) {}

  void Push(const PushRequest& header, Payload payload, Callback<PushReply> done) override {
    ps_->Push(Forge(header), std::move(payload), std::move(done));
  }
  void PushPull(const PushRequest& header, Payload payload, Callback<PushPullReply> done) override {
    ps_->PushPull(Forge(header), std::move(payload), std::move(done));
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    ps_->Pull(request, std::move(done));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    const std::pair caller(request.worker().incarnation(), request.dequeue_seq());
    const bool loses = bug_ == PlantedBug::kLostToken && ++dequeues_ == kLostToken;
    DequeueTokenRequest forged = request;
    forged.set_dequeue_seq(Renumbered(request.dequeue_seq(), caller == lost_));
    if (!loses) return ps_->DequeueToken(forged, std::move(done));
    lost_ = caller;
    ps_->DequeueToken(forged, [this, request, done = std::move(done)](
                                  const absl::StatusOr<DequeueTokenReply>& token) mutable {
      if (!token.ok() || token->done()) return done(token);
      DequeueToken(request, std::move(done));
    });
  }
  void Cancel() override { ps_->Cancel(); }

 private:
  // Numbers leave room for one more after each.
  static uint64_t Renumbered(uint64_t number, bool is_forged) {
    return 2 * number + (is_forged ? 1 : 0);
  }
  PushRequest Forge(const PushRequest& header) {
    PushRequest forged = header;
    const bool repeats = bug_ == PlantedBug::kDoubleApply && !header.ask() &&
                         !pushed_.insert(header.SerializeAsString()).second;
    forged.set_push_seq(Renumbered(header.push_seq(), repeats));
    if (header.next().dequeue_seq() > 0) {
      forged.mutable_next()->set_dequeue_seq(Renumbered(header.next().dequeue_seq(), false));
    }
    return forged;
  }

  PsData* const ps_;
  const PlantedBug bug_;
  std::set<std::string> pushed_;  // headers
  int dequeues_ = 0;
  std::pair<uint64_t, uint64_t> lost_;  // incarnation and number of who has lost a token
};

}  // namespace

std::unique_ptr<PsControl> MakeFaultyControl(PsControl* ps, PlantedBug bug) {
  return std::make_unique<FaultyControl>(ps, bug);
}

std::unique_ptr<PsData> MakeFaultyData(PsData* ps, PlantedBug bug) {
  return std::make_unique<FaultyData>(ps, bug);
}

}  // namespace lockstep::sim
