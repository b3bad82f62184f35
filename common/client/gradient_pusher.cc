#include "common/client/gradient_pusher.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/client/push_plan.h"
#include "common/client/serial_runner.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {

class GradientPusher::Impl {
 public:
  Impl(PsData* ps, const PusherOptions& options)
      : ps_(ps), options_(options), runner_([this] { return Step(); }) {}

  ~Impl() {
    runner_.Close();
    // Whoever started a gradient is told, even one that was never completed.
    Done<PushSummary> done;
    {
      absl::MutexLock lock(&mutex_);
      if (plan_) done = std::move(done_);
    }
    if (done) done(absl::CancelledError("the pusher was destroyed"));
  }

  const PsData* ps() const { return ps_; }

  // As which a dense gradient travels, where that is not as it is.
  std::optional<DType> NarrowType(const TensorView& gradient) const {
    const bool is_narrow = IsHalfWidth(options_.wire_type) && gradient.dtype == DType::kFloat32 &&
                           !ps_->SharesMemory();
    return is_narrow ? std::optional(options_.wire_type) : std::nullopt;
  }

  void Start(PushSeq push_seq, GlobalStep local_step, int num_variables, Done<PushSummary> done) {
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_CHECK(!plan_.has_value());
      push_seq_ = push_seq;
      local_step_ = local_step;
      done_ = std::move(done);
      plan_.emplace(options_, local_step, num_variables);
    }
    runner_.Run();
  }

  void Add(PushPlan::Variable gradient) {
    bool is_last = false;
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_CHECK(plan_.has_value());
      plan_->Add(std::move(gradient));
      is_last = plan_->AllAdded();
    }
    if (is_last) Flush();
  }

  void Flush() { runner_.Run(); }

 private:
  // Elements that are rounded as their message is sent. The same again when it is sent again, since
  // they have not changed.
  struct Narrowing {
    size_t span;  // of the payload
    DType type;
    std::span<const float> elements;
  };
  struct Call {
    size_t message;
    PushRequest header;
    std::vector<std::span<const std::byte>> payload;
    std::vector<Narrowing> narrowings;
    std::shared_ptr<Tensor> narrow;  // memory for what they make, if there are any
  };

  static absl::Duration Now() { return Clock::Real()->Monotonic(); }

  // Sends one message, or tells that the gradient is over. On one thread at a time, so that
  // messages leave in their order.
  bool Step() {
    std::shared_ptr<Gate::Pass> hold = runner_.Hold();
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
      if (const auto wake = plan_->WakeAt()) runner_.RunIn(*wake - Now());
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
      to->set_dtype(ToProto(variable.type()));
      to->mutable_dims()->Add(variable.shape.dims().begin(), variable.shape.dims().end());
      to->set_offset(piece.offset);
      to->set_size(piece.size);
      to->set_rows(static_cast<int64_t>(variable.indices.size()));
      if (outgoing->ask) continue;
      if (variable.narrow_type.has_value()) {
        AppendNarrow(variable, piece, &call);
      } else {
        variable.AppendBytes(piece.offset, piece.size, &call.payload);
      }
    }
    if (!call.narrowings.empty()) call.narrow = TakeMemory();
    return call;
  }

  static void AppendNarrow(const PushPlan::Variable& variable, const PushPlan::Piece& piece,
                           Call* call) {
    const size_t element_bytes = SizeOf(variable.type());
    call->narrowings.push_back({call->payload.size(), variable.type(),
                                variable.values.as<float>().subspan(piece.offset / element_bytes,
                                                                    piece.size / element_bytes)});
    call->payload.emplace_back();
  }

  // For what is rounded for one message.
  std::shared_ptr<Tensor> TakeMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (spare_.empty()) {
      // A chunk, or a bucket, which small tensors fill up to a chunk.
      const size_t bytes =
          std::max({options_.chunk_bytes, options_.bucket_bytes, SizeOf(options_.wire_type)});
      return std::make_shared<Tensor>(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
    }
    std::shared_ptr<Tensor> memory = std::move(spare_.back());
    spare_.pop_back();
    return memory;
  }

  static void NarrowInto(Call* call) {
    std::span<std::byte> free = call->narrow->view().bytes();
    for (const Narrowing& narrowing : call->narrowings) {
      const size_t bytes = narrowing.elements.size() * SizeOf(narrowing.type);
      LOCKSTEP_CHECK(bytes <= free.size());
      Narrow(narrowing.elements, narrowing.type, free.data());
      call->payload[narrowing.span] = free.first(bytes);
      free = free.subspan(bytes);
    }
  }

  void Send(Call call, std::shared_ptr<Gate::Pass> hold) {
    if (call.narrow != nullptr) NarrowInto(&call);
    ps_->Push(call.header, std::move(call.payload),
              [this, message = call.message, narrow = std::move(call.narrow),
               hold = std::move(hold)](const absl::StatusOr<PushReply>& reply) {
                {
                  absl::MutexLock lock(&mutex_);
                  if (narrow != nullptr) spare_.push_back(narrow);
                  if (reply.ok()) {
                    plan_->OnReply(message, *reply, Now());
                  } else {
                    plan_->OnError(message, reply.status(), Now());
                  }
                }
                runner_.Run();
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
  std::vector<std::shared_ptr<Tensor>> spare_ ABSL_GUARDED_BY(mutex_);  // of TakeMemory
  SerialRunner runner_;
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
              .in_memory = impl_->ps()->SharesGradient(gradient.bytes()),
              .narrow_type = impl_->NarrowType(gradient)});
}

void GradientPusher::AddStatistic(VariableId variable, TensorView value) {
  impl_->Add({.id = variable,
              .shape = value.shape,
              .values = value,
              .in_memory = impl_->ps()->SharesGradient(value.bytes())});
}

void GradientPusher::AddRows(VariableId variable, const Shape& variable_shape,
                             const IndexedSlicesView& slices) {
  impl_->Add({.id = variable,
              .shape = variable_shape,
              .values = slices.values,
              .is_sparse = true,
              .indices = slices.indices,
              .in_memory = !slices.values.bytes().empty() &&
                           impl_->ps()->SharesGradient(slices.values.bytes())});
}

void GradientPusher::Flush() { impl_->Flush(); }

}  // namespace lockstep
