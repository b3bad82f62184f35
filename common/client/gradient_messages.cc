#include "common/client/gradient_messages.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {

void PushCall::Round() {
  if (rounded == nullptr) return;
  std::span<std::byte> free = rounded->view().bytes();
  for (const Rounding& rounding : roundings) {
    const size_t bytes = rounding.elements.size() * SizeOf(rounding.type);
    LOCKSTEP_CHECK(bytes <= free.size());
    Narrow(rounding.elements, rounding.type, free.data());
    payload[rounding.span] = free.first(bytes);
    free = free.subspan(bytes);
  }
}

void GradientMessages::Begin(PushSeq push_seq, GlobalStep local_step, int num_tensors) {
  LOCKSTEP_CHECK(!plan_.has_value());
  push_seq_ = push_seq;
  local_step_ = local_step;
  num_tensors_ = num_tensors;
  plan_.emplace(options_, local_step, num_tensors);
}

void GradientMessages::Add(const GradientTensor& gradient) {
  LOCKSTEP_CHECK(plan_.has_value());
  PushPlan::Variable variable{gradient};
  const std::span<const std::byte> bytes = gradient.values.bytes();
  // An empty sparse gradient is its indices alone.
  variable.in_memory = (!gradient.is_sparse || !bytes.empty()) && ps_->SharesGradient(bytes);
  if (IsHalfWidth(options_.wire_dtype) && gradient.values.dtype == DType::kFloat32 &&
      !gradient.is_sparse && !gradient.is_statistic && !ps_->SharesMemory()) {
    variable.narrow_type = options_.wire_dtype;
  }
  plan_->Add(std::move(variable));
}

std::optional<PushCall> GradientMessages::Next(absl::Duration now) {
  if (!plan_.has_value()) return std::nullopt;
  const std::optional<PushPlan::Outgoing> outgoing = plan_->Next(now);
  if (!outgoing.has_value()) return std::nullopt;
  PushCall call{.message = outgoing->message};
  *call.header.mutable_worker() = options_.identity;
  call.header.set_push_seq(push_seq_.value());
  call.header.set_local_step(local_step_.value());
  call.header.set_ask(outgoing->ask);
  call.header.set_in_memory(outgoing->in_memory);
  for (const PushPlan::Piece& piece : outgoing->pieces) AddPiece(piece, outgoing->ask, &call);
  call.is_whole_gradient =
      !outgoing->ask && outgoing->pieces.size() == static_cast<size_t>(num_tensors_);
  if (!call.roundings.empty()) call.rounded = TakeMemory();
  return call;
}

void GradientMessages::AddPiece(const PushPlan::Piece& piece, bool ask, PushCall* call) const {
  const PushPlan::Variable& variable = plan_->variable(piece.variable);
  PushPiece* to = call->header.add_pieces();
  to->set_variable(variable.id.value());
  to->set_dtype(ToProto(variable.type()));
  to->mutable_dims()->Add(variable.shape.dims().begin(), variable.shape.dims().end());
  to->set_offset(piece.offset);
  to->set_size(piece.size);
  to->set_rows(static_cast<int64_t>(variable.indices.size()));
  call->num_bytes += piece.size;
  if (ask) return;
  if (!variable.narrow_type.has_value()) {
    return variable.AppendBytes(piece.offset, piece.size, &call->payload);
  }
  const size_t element_bytes = SizeOf(variable.type());
  call->roundings.push_back({call->payload.size(), variable.type(),
                             variable.values.as<float>().subspan(piece.offset / element_bytes,
                                                                 piece.size / element_bytes)});
  call->payload.emplace_back();
}

std::shared_ptr<Tensor> GradientMessages::TakeMemory() {
  if (spare_.empty()) {
    // A chunk, or a bucket, which small tensors fill up to a chunk.
    const size_t bytes =
        std::max({options_.push_chunk_bytes, options_.bucket_bytes, SizeOf(options_.wire_dtype)});
    return std::make_shared<Tensor>(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
  }
  std::shared_ptr<Tensor> memory = std::move(spare_.back());
  spare_.pop_back();
  return memory;
}

void GradientMessages::OnReply(const PushCall& call, const absl::StatusOr<PushReply>& reply,
                               absl::Duration now) {
  if (call.rounded != nullptr) spare_.push_back(call.rounded);
  if (reply.ok()) {
    plan_->OnReply(call.message, *reply, now);
  } else {
    plan_->OnError(call.message, reply.status(), now);
  }
}

std::optional<absl::Duration> GradientMessages::WakeAt() const {
  return plan_.has_value() ? plan_->WakeAt() : std::nullopt;
}

std::optional<absl::StatusOr<PushSummary>> GradientMessages::TakeResult() {
  if (!plan_.has_value()) return std::nullopt;
  std::optional<absl::StatusOr<PushSummary>> result = plan_->Result();
  if (result.has_value()) plan_.reset();
  return result;
}

void GradientMessages::Cancel() {
  if (plan_.has_value()) plan_->Cancel();
}

}  // namespace lockstep
