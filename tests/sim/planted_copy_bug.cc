#include "tests/sim/planted_copy_bug.h"

#include <utility>

namespace lockstep::sim {
namespace {

using Payload = std::vector<std::span<const std::byte>>;

// Of the copy's steps: the first few are taken, so that the job has begun.
constexpr int64_t kFirstForgotten = 2;

// Does not wait for the copy.
class EagerTarget final : public ps::CopyTarget {
 public:
  explicit EagerTarget(std::shared_ptr<ps::CopyTarget> copy) : copy_(std::move(copy)) {}

  MutableTensorView MeanOf(VariableId variable, DType dtype, const Shape& shape) override {
    return copy_->MeanOf(variable, dtype, shape);
  }
  void Send(ps::StepMeans means, StatusCallback taken) override {
    copy_->Send(std::move(means), [](const absl::Status&) {});
    taken(absl::OkStatus());
  }
  bool IsReady() const override { return copy_->IsReady(); }
  void BeginState(ps::StateBegin begin) override { copy_->BeginState(std::move(begin)); }
  bool LacksState() const override { return copy_->LacksState(); }
  void SendState(GlobalStep step, std::vector<std::span<const std::byte>> tensors,
                 StatusCallback taken) override {
    copy_->SendState(step, std::move(tensors), std::move(taken));
  }
  void End(const absl::Status& end) override { copy_->End(end); }
  absl::Duration Silence() const override { return copy_->Silence(); }

 private:
  const std::shared_ptr<ps::CopyTarget> copy_;
};

PushReply Taken(const PushRequest& mean) {
  PushReply reply;
  reply.set_shard_step(mean.local_step() + 1);
  for (const PushPiece& piece : mean.pieces()) {
    PushReply::Outcome* const outcome = reply.add_outcomes();
    outcome->set_variable(piece.variable());
    outcome->set_verdict(ACCEPTED);
  }
  return reply;
}

class FaultyCopy final : public PsData {
 public:
  FaultyCopy(PsData* ps, PlantedBug bug) : ps_(ps), bug_(bug) {}

  void Push(const PushRequest& header, Payload payload, Callback<PushReply> done) override {
    if (!header.has_mean_learning_rate())
      return ps_->Push(header, std::move(payload), std::move(done));
    if (bug_ == PlantedBug::kForgottenMean && header.local_step() >= kFirstForgotten) {
      return done(Taken(header));
    }
    ps_->Push(header, std::move(payload),
              [this, header, done = std::move(done)](absl::StatusOr<PushReply> reply) mutable {
                const bool is_refused = absl::IsAborted(reply.status());
                if (bug_ == PlantedBug::kUnfencedPrimary && is_refused) reply = Taken(header);
                done(std::move(reply));
              });
  }
  void PushPull(const PushRequest& header, Payload payload, Callback<PushPullReply> done) override {
    ps_->PushPull(header, std::move(payload), std::move(done));
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    ps_->Pull(request, std::move(done));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    ps_->DequeueToken(request, std::move(done));
  }
  // Bytes of the state that are lost on the way.
  void PutState(const PutStateRequest& header, Payload payload,
                Callback<PutStateReply> done) override {
    if (bug_ != PlantedBug::kLostState) {
      return ps_->PutState(header, std::move(payload), std::move(done));
    }
    size_t size = 0;
    for (const auto& part : payload) size += part.size();
    const std::vector<std::byte> zeros(size);
    ps_->PutState(header, {zeros}, std::move(done));
  }
  void Cancel() override { ps_->Cancel(); }

 private:
  PsData* const ps_;
  const PlantedBug bug_;
};

}  // namespace

std::shared_ptr<ps::CopyTarget> MakeFaultyTarget(std::shared_ptr<ps::CopyTarget> copy,
                                                 PlantedBug bug) {
  if (bug != PlantedBug::kShownBeforeCopy) return copy;
  return std::make_shared<EagerTarget>(std::move(copy));
}

std::unique_ptr<PsData> MakeFaultyCopy(PsData* ps, PlantedBug bug) {
  const bool is_there = bug == PlantedBug::kForgottenMean || bug == PlantedBug::kUnfencedPrimary ||
                        bug == PlantedBug::kLostState;
  return is_there ? std::make_unique<FaultyCopy>(ps, bug) : nullptr;
}

}  // namespace lockstep::sim
