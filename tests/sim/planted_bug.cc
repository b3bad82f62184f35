#include "tests/sim/planted_bug.h"

#include <google/protobuf/message.h>

#include <fstream>
#include <iterator>
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
  FaultyControl(PsControl* ps, PlantedBug bug, LastCommands* last)
      : ps_(ps), bug_(bug), last_(last) {
    if (bug == PlantedBug::kSplitStep && last->create.has_placement()) MakeVariablesAnew();
  }

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    const auto forged = std::shared_ptr<google::protobuf::Message>(
        static_cast<const google::protobuf::Message&>(request).New());
    forged->CopyFrom(static_cast<const google::protobuf::Message&>(request));
    if (bug_ == PlantedBug::kSharedTerm) ShareTerm(forged.get());
    auto* const view = dynamic_cast<SetViewRequest*>(forged.get());
    if (view != nullptr && bug_ == PlantedBug::kOldView) RenumberView(view);
    if (dynamic_cast<SaveRequest*>(forged.get()) != nullptr) WriteLateFile();
    ps_->Start(method, *forged, reply,
               [this, forged, reply, done = std::move(done)](absl::Status status) mutable {
                 if (status.ok()) Note(*forged, *reply);
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
    if (command->term() == last_->view.command().term())
      command->set_chief(last_->view.command().chief());
  }
  void RenumberView(SetViewRequest* view) const {
    if (view->command().term() == last_->view.command().term() &&
        view->number() < last_->view.number()) {
      view->set_number(last_->view.number());
    }
  }

  void Note(const google::protobuf::Message& request, const google::protobuf::MessageLite& reply) {
    if (const auto* view = dynamic_cast<const SetViewRequest*>(&request)) last_->view = *view;
    if (const auto* create = dynamic_cast<const CreateVariablesRequest*>(&request)) {
      last_->create = *create;
    }
    const auto* const save = dynamic_cast<const SaveRequest*>(&request);
    if (save == nullptr || bug_ != PlantedBug::kManifestBeforeShard) return;
    path_ = save->folder() + "/" + static_cast<const SaveReply&>(reply).file();
    std::ifstream file(path_, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    std::ofstream(path_, std::ios::binary) << std::string(bytes_.size(), '\0');
  }
  // Where the checkpoint is still there.
  void WriteLateFile() {
    if (path_.empty()) return;
    std::ofstream(path_, std::ios::binary) << bytes_;
    path_.clear();
  }
  void MakeVariablesAnew() {
    SetViewReply viewed;
    ps_->Start(kSetView, last_->view, &viewed, [](const absl::Status&) {});
    CreateVariablesReply created;
    ps_->Start(kCreateVariables, last_->create, &created, [](const absl::Status&) {});
  }

  PsControl* const ps_;
  const PlantedBug bug_;
  LastCommands* const last_;
  // Of the file that has not been written yet.
  std::string path_, bytes_;
};

class FaultyData final : public PsData {
 public:
  FaultyData(PsData* ps, PlantedBug bug, const LastCommands* last)
      : ps_(ps), bug_(bug), last_(last) {}

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
    if (caller == lost_) forged.set_token_step(lost_step_);
    if (!loses) return ps_->DequeueToken(forged, std::move(done));
    lost_ = caller;
    ps_->DequeueToken(forged, [this, request, done = std::move(done)](
                                  const absl::StatusOr<DequeueTokenReply>& token) mutable {
      if (!token.ok() || token->done()) return done(token);
      lost_step_ = token->step();
      DequeueToken(request, std::move(done));
    });
  }
  void StoreVersion(const StoreVersionRequest& header, Payload payload,
                    Callback<StoreVersionReply> done) override {
    ps_->StoreVersion(header, std::move(payload), std::move(done));
  }
  void PutState(const PutStateRequest& header, Payload payload,
                Callback<PutStateReply> done) override {
    ps_->PutState(header, std::move(payload), std::move(done));
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
    const bool is_stale = header.worker().epoch() < last_->view.epoch();
    if (bug_ == PlantedBug::kStaleAfterRestore && is_stale) Renew(forged.mutable_worker());
    return forged;
  }
  // As the process of now.
  void Renew(WorkerIdentity* worker) const {
    for (const Member& member : last_->view.members()) {
      if (member.worker() == worker->worker()) worker->set_incarnation(member.incarnation());
    }
    worker->set_epoch(last_->view.epoch());
  }

  PsData* const ps_;
  const PlantedBug bug_;
  const LastCommands* const last_;
  std::set<std::string> pushed_;  // headers
  int dequeues_ = 0;
  std::pair<uint64_t, uint64_t> lost_;  // incarnation and number of who has lost a token
  int64_t lost_step_ = 0;               // of that token, which a worker without it would get again
};

}  // namespace

std::unique_ptr<PsControl> MakeFaultyControl(PsControl* ps, PlantedBug bug, LastCommands* last) {
  return std::make_unique<FaultyControl>(ps, bug, last);
}

std::unique_ptr<PsData> MakeFaultyData(PsData* ps, PlantedBug bug, const LastCommands* last) {
  return std::make_unique<FaultyData>(ps, bug, last);
}

}  // namespace lockstep::sim
