#include "tests/support/in_process_ps.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ps/service/command_calls.h"
#include "ps/service/convert.h"
#include "tests/support/fake_ps_data.h"
#include "tests/support/fake_service_client.h"

namespace lockstep {
namespace {

absl::Status Cancelled() { return absl::CancelledError("calls were cancelled"); }

// A callback that hears the first of two answers: the shard's, or the cancellation. The shard may
// keep it for longer than the client lives.
template <typename T>
class FirstAnswer {
 public:
  explicit FirstAnswer(Callback<T> done) : done_(std::move(done)) {}
  void operator()(absl::StatusOr<T> result) {
    Callback<T> done;
    {
      absl::MutexLock lock(&mutex_);
      done = std::exchange(done_, nullptr);
    }
    if (done) done(std::move(result));
  }

 private:
  absl::Mutex mutex_;
  Callback<T> done_ ABSL_GUARDED_BY(mutex_);
};

class Calls {
 public:
  ~Calls() { Cancel(); }

  // Null when the calls were cancelled: then `done` has been told.
  template <typename T>
  std::shared_ptr<FirstAnswer<T>> Begin(Callback<T> done) {
    auto answer = std::make_shared<FirstAnswer<T>>(std::move(done));
    {
      absl::MutexLock lock(&mutex_);
      if (!cancelled_) {
        in_flight_.push_back([answer] { (*answer)(Cancelled()); });
        return answer;
      }
    }
    (*answer)(Cancelled());
    return nullptr;
  }

  void Cancel() {
    std::vector<std::function<void()>> in_flight;
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      in_flight.swap(in_flight_);
    }
    for (const auto& cancel : in_flight) cancel();
  }

 private:
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> in_flight_ ABSL_GUARDED_BY(mutex_);
};

class InProcessControl final : public test::FakeServiceClient<PsControlService> {
 public:
  InProcessControl(ps::Shard* shard, Incarnation incarnation, ps::CommandWatch* watch,
                   ps::JobFinisher* finisher)
      : shard_(shard),
        incarnation_(incarnation),
        watch_(watch == nullptr ? &own_watch_ : watch),
        finisher_(finisher == nullptr ? &own_finisher_ : finisher) {
    Handle(kGetView, std::bind_front(&InProcessControl::GetView, this));
    Handle(kSetView, std::bind_front(&InProcessControl::SetView, this));
    Handle(kCreateVariables, std::bind_front(&InProcessControl::CreateVariables, this));
    Handle(kGrant, std::bind_front(&InProcessControl::Grant, this));
    Handle(kCommitStep, std::bind_front(&InProcessControl::CommitStep, this));
    Handle(kSave, std::bind_front(&InProcessControl::Save, this));
    Handle(kReleaseSnapshot, std::bind_front(&InProcessControl::ReleaseSnapshot, this));
    Handle(kFinish, std::bind_front(&InProcessControl::Finish, this));
    Handle(kRenewLease, std::bind_front(&InProcessControl::RenewLease, this));
    Handle(kWatchCommand, std::bind_front(&InProcessControl::WatchCommand, this));
  }

 private:
  void GetView(const GetViewRequest&, Callback<SetViewReply> done) {
    if (const absl::Status status = finisher_->CheckServing(); !status.ok()) return done(status);
    SetViewReply reply = ps::ToViewReply(shard_->Report(), incarnation_);
    *reply.mutable_command_status() = watch_->Status();
    done(std::move(reply));
  }
  void SetView(const SetViewRequest& request, Callback<SetViewReply> done) {
    if (const absl::Status status = finisher_->CheckServing(); !status.ok()) return done(status);
    const auto view = ps::FromProto(request);
    if (!view.ok()) return done(view.status());
    const auto state = shard_->SetView(*view);
    if (!state.ok()) return done(state.status());
    ps::NoteView(request, watch_);
    done(ps::ToProto(*state, incarnation_));
  }
  void CreateVariables(const CreateVariablesRequest& request, Callback<CreateVariablesReply> done) {
    const auto created = shard_->CreateVariables(request);
    if (!created.ok()) return done(created.status());
    done(created->reply);
  }
  void Grant(const GrantRequest& request, Callback<GrantReply> done) {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    shard_->Grant(ps::FromProto(request), [answer](const absl::StatusOr<ps::ClosedStep>& closed) {
      if (!closed.ok()) return (*answer)(closed.status());
      (*answer)(ps::ToProto(*closed));
    });
  }
  void CommitStep(const CommitStepRequest& request, Callback<CommitStepReply> done) {
    const auto step =
        shard_->CommitStep(request.command(), GlobalStep(request.step()), request.last());
    if (!step.ok()) return done(step.status());
    CommitStepReply reply;
    reply.set_global_step(step->value());
    done(std::move(reply));
  }
  void Save(const SaveRequest& request, Callback<SaveReply> done) {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    shard_->AwaitStored(request.command(), GlobalStep(request.version()),
                        [this, request, answer](const absl::StatusOr<bool>& stored) {
                          if (!stored.ok()) return (*answer)(stored.status());
                          const auto saved = shard_->Save(
                              request.command(), GlobalStep(request.version()), request.folder());
                          if (!saved.ok()) return (*answer)(saved.status());
                          (*answer)(ps::ToProto(*saved));
                        });
  }
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request, Callback<ReleaseSnapshotReply> done) {
    const absl::Status status = shard_->ReleaseSnapshot(
        request.command(), GlobalStep(request.version()), ps::EvaluationOf(request));
    if (!status.ok()) return done(status);
    done(ReleaseSnapshotReply());
  }
  void Finish(const FinishRequest& request, Callback<FinishReply> done) {
    const absl::StatusOr<ps::JobEnd> end = finisher_->Finish(request);
    if (!end.ok()) return done(end.status());
    done(FinishReply());
  }
  void RenewLease(const RenewLeaseRequest& request, Callback<RenewLeaseReply> done) {
    if (const absl::Status status = finisher_->CheckServing(); !status.ok()) return done(status);
    done(ps::HandleRenewLease(*shard_, request, watch_));
  }
  void WatchCommand(const WatchCommandRequest& request, Callback<WatchCommandReply> done) {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    watch_->Watch(request, [answer](absl::StatusOr<WatchCommandReply> reply) {
      (*answer)(std::move(reply));
    });
  }

  ps::Shard* const shard_;
  const Incarnation incarnation_;
  Calls calls_;
  ps::CommandWatch own_watch_{Clock::Real()};
  ps::CommandWatch* const watch_;
  ps::JobFinisher own_finisher_{shard_, watch_};
  ps::JobFinisher* const finisher_;
};

std::unique_ptr<PulledValues> Copied(const ps::PullResult& result) {
  std::string payload;
  for (const ps::PulledPiece& piece : result.pieces) {
    payload.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
  }
  PullReply reply;
  ps::ToProto(result, &reply);
  return std::make_unique<PulledValues>(std::move(reply), std::move(payload));
}

class InProcessData final : public PsData {
 public:
  InProcessData(ps::Shard* shard, bool owns_payloads)
      : shard_(shard), owns_payloads_(owns_payloads) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    auto arguments = ps::FromProto(header);
    if (!arguments.ok()) return (*answer)(arguments.status());
    arguments->tensors = Receive(std::move(payload));
    auto result = shard_->Push(*arguments);
    if (!result.ok()) return (*answer)(result.status());
    PushReply reply;
    ps::BeginReply(header, &reply);
    ps::ToProto(ps::PushPullResult{.push = *std::move(result)}, &reply);
    (*answer)(std::move(reply));
  }

  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    auto arguments = ps::FromProto(header);
    if (!arguments.ok()) return (*answer)(arguments.status());
    arguments->tensors = Receive(std::move(payload));
    ps::PushPull(shard_, *arguments, ps::FromProto(header.next(), arguments->worker),
                 [answer, header](const absl::StatusOr<ps::PushPullResult>& result) {
                   if (!result.ok()) return (*answer)(result.status());
                   PushPullReply reply;
                   ps::BeginReply(header, &reply.push);
                   ps::ToProto(*result, &reply.push);
                   if (result->values.has_value()) reply.values = Copied(*result->values);
                   (*answer)(std::move(reply));
                 });
  }

  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    const auto arguments = ps::FromProto(request);
    if (!arguments.ok()) return (*answer)(arguments.status());
    shard_->Pull(*arguments, [answer](const absl::StatusOr<ps::PullResult>& result) {
      if (!result.ok()) return (*answer)(result.status());
      (*answer)(Copied(*result));
    });
  }

  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    const auto answer = calls_.Begin(std::move(done));
    if (answer == nullptr) return;
    shard_->DequeueToken(ps::FromProto(request), [answer](const absl::StatusOr<ps::Token>& token) {
      if (!token.ok()) return (*answer)(token.status());
      (*answer)(ps::ToProto(*token));
    });
  }

  void StoreVersion(const StoreVersionRequest& header,
                    std::vector<std::span<const std::byte>> payload,
                    Callback<StoreVersionReply> done) override {
    ps::StoreArguments arguments = ps::FromProto(header);
    arguments.tensors = Receive(std::move(payload));
    const absl::StatusOr<bool> complete = shard_->Store(arguments);
    if (!complete.ok()) return done(complete.status());
    StoreVersionReply reply;
    reply.set_complete(*complete);
    done(std::move(reply));
  }

  void PutState(const PutStateRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PutStateReply> done) override {
    ps::StateArguments arguments = ps::FromProto(header);
    arguments.tensors = Receive(std::move(payload));
    const absl::StatusOr<bool> complete = shard_->PutState(arguments);
    if (!complete.ok()) return done(complete.status());
    PutStateReply reply;
    reply.set_complete(*complete);
    done(std::move(reply));
  }

  void Cancel() override { calls_.Cancel(); }

 private:
  ReceivedTensors Receive(ReceivedTensors::Segments payload) const {
    if (!owns_payloads_) return ReceivedTensors(std::move(payload));
    struct Message {
      std::vector<std::byte> bytes;
      ReceivedTensors::Segments segments;
    };
    const auto message = std::make_shared<Message>();
    for (const auto& part : payload) {
      message->bytes.insert(message->bytes.end(), part.begin(), part.end());
    }
    message->segments = {message->bytes};
    return ReceivedTensors(
        std::shared_ptr<const ReceivedTensors::Segments>(message, &message->segments));
  }

  ps::Shard* const shard_;
  const bool owns_payloads_;
  Calls calls_;
};

}  // namespace

std::unique_ptr<PsControl> MakeInProcessControl(ps::Shard* shard, Incarnation incarnation,
                                                ps::CommandWatch* watch,
                                                ps::JobFinisher* finisher) {
  return std::make_unique<InProcessControl>(shard, incarnation, watch, finisher);
}

std::unique_ptr<PsData> MakeInProcessData(ps::Shard* shard, bool owns_payloads) {
  return std::make_unique<InProcessData>(shard, owns_payloads);
}

}  // namespace lockstep
