#include "common/client/gradient_pusher.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/client/pump.h"
#include "common/client/push_plan.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {

class GradientPusher::Impl {
 public:
  Impl(PsData* ps, const PusherOptions& options)
      : ps_(ps), options_(options), pump_([this] { return Step(); }) {}

  ~Impl() {
    pump_.Close();
    // Whoever started a gradient is told, even one that was never completed.
    Done<PushSummary> done;
    {
      absl::MutexLock lock(&mutex_);
      if (plan_) done = std::move(done_);
    }
    if (done) done(absl::CancelledError("the pusher was destroyed"));
  }

  const PsData* ps() const { return ps_; }

  void Start(PushSeq push_seq, GlobalStep local_step, int num_variables, Done<PushSummary> done) {
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_CHECK(!plan_.has_value());
      push_seq_ = push_seq;
      local_step_ = local_step;
      done_ = std::move(done);
      plan_.emplace(options_, local_step, num_variables, Now());
    }
    pump_.Run();
  }

  void Add(PushPlan::Variable gradient) {
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_CHECK(plan_.has_value());
      plan_->Add(std::move(gradient));
    }
    pump_.Run();
  }

 private:
  struct Call {
    size_t message;
    PushRequest header;
    std::vector<std::span<const std::byte>> payload;
  };

  static absl::Duration Now() { return Clock::Real()->Monotonic(); }

  // Sends one message, or tells that the gradient is over. On one thread at a time, so that
  // messages leave in their order.
  bool Step() {
    std::shared_ptr<Gate::Pass> hold = pump_.Hold();
    if (!*hold) return false;
    std::optional<Call> call;
    Done<PushSummary> done;
    std::optional<absl::StatusOr<PushSummary>> result;
    {
      absl::MutexLock lock(&mutex_);
      call = NextCall();
      if (!call) result = TakeResult(&done);
    }
    if (call) Send(*std::move(call), std::move(hold));
    if (result) done(*std::move(result));
    return call.has_value();
  }

  std::optional<Call> NextCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!plan_) return std::nullopt;
    const auto outgoing = plan_->Next(Now());
    if (!outgoing) {
      if (const auto wake = plan_->WakeAt()) pump_.RunIn(*wake - Now());
      return std::nullopt;
    }
    Call call{.message = outgoing->message};
    *call.header.mutable_worker() = options_.identity;
    call.header.set_push_seq(push_seq_.value());
    call.header.set_local_step(local_step_.value());
    call.header.set_ask(outgoing->ask);
    call.header.set_in_memory(outgoing->in_memory);
    for (const PushPlan::Piece& piece : outgoing->pieces) {
      const PushPlan::Variable& variable = plan_->variable(piece.variable);
      PushPiece* to = call.header.add_pieces();
      to->set_variable(variable.id.value());
      to->set_dtype(ToProto(variable.values.dtype));
      to->mutable_dims()->Add(variable.shape.dims().begin(), variable.shape.dims().end());
      to->set_offset(piece.offset);
      to->set_size(piece.size);
      to->set_rows(static_cast<int64_t>(variable.indices.size()));
      if (!outgoing->ask) variable.AppendBytes(piece.offset, piece.size, &call.payload);
    }
    return call;
  }

  void Send(Call call, std::shared_ptr<Gate::Pass> hold) {
    ps_->Push(call.header, std::move(call.payload),
              [this, message = call.message,
               hold = std::move(hold)](const absl::StatusOr<PushReply>& reply) {
                {
                  absl::MutexLock lock(&mutex_);
                  if (reply.ok()) {
                    plan_->OnReply(message, *reply, Now());
                  } else {
                    plan_->OnError(message, reply.status(), Now());
                  }
                }
                pump_.Run();
              });
  }

  std::optional<absl::StatusOr<PushSummary>> TakeResult(Done<PushSummary>* done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!plan_) return std::nullopt;
    auto result = plan_->Result();
    if (result) {
      plan_.reset();
      *done = std::move(done_);
    }
    return result;
  }

  PsData* const ps_;  // outlives the pusher
  const PusherOptions options_;
  absl::Mutex mutex_;
  std::optional<PushPlan> plan_ ABSL_GUARDED_BY(mutex_);  // while a gradient is under way
  PushSeq push_seq_ ABSL_GUARDED_BY(mutex_);
  GlobalStep local_step_ ABSL_GUARDED_BY(mutex_);
  Done<PushSummary> done_ ABSL_GUARDED_BY(mutex_);
  Pump pump_;
};

GradientPusher::GradientPusher(PsData* ps, const PusherOptions& options)
    : impl_(std::make_unique<Impl>(ps, options)) {}

GradientPusher::~GradientPusher() = default;

void GradientPusher::Start(PushSeq push_seq, GlobalStep local_step, int num_variables,
                           Done<PushSummary> done) {
  impl_->Start(push_seq, local_step, num_variables, std::move(done));
}

void GradientPusher::Add(VariableId variable, TensorView gradient) {
  impl_->Add({.id = variable,
              .shape = gradient.shape,
              .values = gradient,
              .in_memory = impl_->ps()->SharesGradient(gradient.bytes())});
}

void GradientPusher::AddRows(VariableId variable, const Shape& variable_shape,
                             const IndexedSlicesView& slices) {
  impl_->Add({.id = variable,
              .shape = variable_shape,
              .values = slices.values,
              .is_sparse = true,
              .indices = slices.indices});
}

}  // namespace lockstep
