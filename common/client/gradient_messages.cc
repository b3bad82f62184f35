#include "common/client/gradient_messages.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/half_width.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {

void GradientMessages::Begin(PushSeq push_seq, GlobalStep local_step, int num_tensors) {
  LOCKSTEP_CHECK(!is_active());
  is_over_ = false;
  push_seq_ = push_seq;
  local_step_ = local_step;
  num_tensors_ = num_tensors;
  has_gradient_ = true;
  if (plan_.has_value()) {
    plan_->Restart(local_step, num_tensors);
  } else {
    plan_.emplace(options_, local_step, num_tensors);
  }
}

void GradientMessages::Add(const GradientTensor& gradient) {
  LOCKSTEP_CHECK(is_active());
  PushPlan::Variable variable{gradient};
  const std::span<const std::byte> bytes = gradient.values.bytes();
  // An empty sparse gradient is its indices alone.
  variable.by_reference =
      (!gradient.is_sparse || !bytes.empty()) && transport_->SendsByReference(bytes);
  // What is read in place has its own type. The two answers may be of different peers.
  if (IsHalfWidth(options_.wire_dtype) && gradient.values.dtype == DType::kFloat32 &&
      !gradient.is_sparse && !gradient.is_statistic && !variable.by_reference &&
      transport_->MayRound()) {
    variable.narrow_type = options_.wire_dtype;
  }
  plan_->Add(std::move(variable));
}

std::optional<PushCall> GradientMessages::Next(absl::Duration now) {
  if (!has_gradient_) return std::nullopt;
  const std::optional<PushPlan::Outgoing> outgoing = plan_->Next(now);
  if (!outgoing.has_value()) return std::nullopt;
  PushCall call{.message = outgoing->message, .header = NewArenaMessage<PushRequest>()};
  *call.header->mutable_worker() = options_.identity;
  call.header->set_push_seq(push_seq_.value());
  call.header->set_local_step(local_step_.value());
  call.header->set_ask(outgoing->ask);
  call.header->mutable_pieces()->Reserve(static_cast<int>(outgoing->pieces.size()));
  if (!outgoing->ask) call.tensors.reserve(outgoing->pieces.size());
  for (const PushPlan::Piece& piece : outgoing->pieces) AddPiece(piece, *outgoing, &call);
  call.is_whole_gradient = IsWholeGradient(*outgoing);
  return call;
}

bool GradientMessages::IsWholeGradient(const PushPlan::Outgoing& outgoing) const {
  if (outgoing.ask || outgoing.pieces.size() != static_cast<size_t>(num_tensors_)) return false;
  // The only piece may be a chunk of the only variable.
  return std::ranges::all_of(outgoing.pieces, [this](const PushPlan::Piece& piece) {
    return piece.size == plan_->variable(piece.variable).num_bytes();
  });
}

void GradientMessages::AddPiece(const PushPlan::Piece& piece, const PushPlan::Outgoing& outgoing,
                                PushCall* call) const {
  const PushPlan::Variable& variable = plan_->variable(piece.variable);
  PushPiece* to = call->header->add_pieces();
  to->set_variable(variable.id.value());
  to->set_dtype(ToProto(variable.type()));
  to->mutable_dims()->Add(variable.shape.dims().begin(), variable.shape.dims().end());
  to->set_offset(piece.offset);
  to->set_size(piece.size);
  to->set_rows(static_cast<int64_t>(variable.indices.size()));
  call->num_bytes += piece.size;
  if (outgoing.ask) return;
  OutgoingTensor& tensor = call->tensors.emplace_back();
  tensor.values = variable.values.bytes();
  tensor.row_indices = {variable.indices.data(), variable.indices.size()};
  tensor.rounded_to = variable.narrow_type;
  tensor.by_reference = outgoing.by_reference;
  if (outgoing.by_reference) return;
  tensor.offset = piece.offset;
  tensor.size = piece.size;
}

void GradientMessages::OnReply(const PushCall& call, const PushAnswer& reply, absl::Duration now) {
  if (reply.ok()) {
    plan_->OnReply(call.message, **reply, now);
  } else {
    plan_->OnError(call.message, reply.status(), now);
  }
}

std::optional<absl::Duration> GradientMessages::WakeAt() const {
  return has_gradient_ ? plan_->WakeAt() : std::nullopt;
}

std::optional<absl::StatusOr<PushSummary>> GradientMessages::TakeResult() {
  if (!is_active()) return std::nullopt;
  std::optional<absl::StatusOr<PushSummary>> result = plan_->Result();
  is_over_ = result.has_value();
  if (is_over_) has_gradient_ = result->ok();
  return result;
}

std::optional<absl::Status> GradientMessages::TakeLoss() {
  if (!has_gradient_ || !is_over_) return std::nullopt;
  const std::optional<absl::StatusOr<PushSummary>> result = plan_->Result();
  if (!result.has_value() || result->ok()) return std::nullopt;
  has_gradient_ = false;
  return result->status();
}

void GradientMessages::Repeat() {
  if (has_gradient_) plan_->Repeat();
}

bool GradientMessages::Forget() {
  if (!has_gradient_ || !is_over_) return true;
  if (plan_->IsInFlight()) {
    plan_->Cancel();
    return false;
  }
  has_gradient_ = false;
  return true;
}

void GradientMessages::Cancel() {
  if (has_gradient_) plan_->Cancel();
}

}  // namespace lockstep
