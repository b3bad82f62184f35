#include "common/client/fetched_values.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/half_width.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {
namespace {

FetchPlan::Extent ExtentOf(const FetchTarget& target, bool shares_values, DType wire_dtype) {
  const uint64_t bytes = target.value.num_bytes();
  const bool may_be_narrow =
      target.value.dtype == DType::kFloat32 && !target.rows.has_value() && !target.is_statistic;
  if (may_be_narrow && IsHalfWidth(wire_dtype)) {
    return {.units = static_cast<uint64_t>(target.value.num_elements()),
            .unit_bytes = SizeOf(wire_dtype),
            .is_narrow = true};
  }
  if (!target.rows.has_value() || target.rows->empty()) {
    return {.units = bytes,
            .may_be_reference = shares_values,
            .stays = shares_values && target.in_place};
  }
  const uint64_t rows = target.rows->size();
  return {.units = rows,
          .unit_bytes = bytes / rows + sizeof(int64_t),
          .may_be_reference = shares_values};
}

std::span<const int64_t> RowsOf(const FetchTarget& target, const FetchPlan::Piece& piece) {
  return target.rows->subspan(piece.first, piece.count);
}

std::span<std::byte> MemoryOf(const FetchTarget& target, const FetchPlan::Piece& piece) {
  const std::span<std::byte> bytes = target.value.bytes();
  if (!target.rows.has_value()) return bytes.subspan(piece.first, piece.count);
  const uint64_t row_bytes = bytes.size() / target.rows->size();
  return bytes.subspan(piece.first * row_bytes, piece.count * row_bytes);
}

// `unit_bytes`: of a piece that names no rows.
void Describe(const FetchTarget& target, const FetchPlan::Piece& piece, uint64_t unit_bytes,
              PullPiece* to) {
  to->set_variable(target.variable.value());
  if (target.rows.has_value()) {
    const std::span<const int64_t> rows = RowsOf(target, piece);
    to->mutable_rows()->Add(rows.begin(), rows.end());
  } else {
    to->set_offset(piece.first * unit_bytes);
    to->set_size(piece.count * unit_bytes);
  }
}

bool Answers(const PullPiece& reply, const FetchTarget& target, const FetchPlan::Piece& piece,
             uint64_t unit_bytes) {
  const uint64_t offset = target.rows.has_value() ? 0 : piece.first * unit_bytes;
  return reply.variable() == target.variable.value() && reply.offset() == offset;
}

}  // namespace

void FetchedValues::SetTargets(std::vector<FetchTarget> targets) {
  LOCKSTEP_CHECK(!is_active_);
  targets_ = std::move(targets);
}

void FetchedValues::SetTarget(size_t target, MutableTensorView value,
                              std::optional<std::span<const int64_t>> rows) {
  LOCKSTEP_CHECK(!is_active_);
  LOCKSTEP_CHECK(!rows.has_value() || value.shape.dim(0) == rows->size());
  targets_[target].value = std::move(value);
  targets_[target].rows = rows;
}

void FetchedValues::Begin(GlobalStep version, FetchKind kind) {
  LOCKSTEP_CHECK(!std::exchange(is_active_, true));
  version_ = version;
  const bool are_published = !options_.averages && options_.slot.empty();
  Start(transport_->ReceivesByReference() && are_published, kind);
}

void FetchedValues::Start(bool shares_values, FetchKind kind) {
  shares_values_ = shares_values;
  extents_.clear();
  bool moves = false;
  const DType wire_dtype = transport_->MayRound() ? options_.wire_dtype : DType::kFloat32;
  for (const FetchTarget& target : targets_) {
    extents_.push_back(ExtentOf(target, shares_values, wire_dtype));
    moves = moves || (target.in_place && extents_.back().units > 0);
  }
  plan_.Start(version_, extents_, kind);
  // Values in place are read for as long as nothing newer has been fetched.
  if (moves) {
    kept_.clear();
  } else {
    for (auto& values : in_place_) {
      if (values.has_value()) kept_.push_back(*std::move(values));
    }
  }
  in_place_.clear();
  in_place_.resize(plan_.num_requests());
  shown_.clear();
}

uint64_t FetchedValues::UnitBytes(bool is_narrow) const {
  return is_narrow ? SizeOf(options_.wire_dtype) : 1;
}

std::optional<FetchCall> FetchedValues::Next(absl::Duration now) {
  if (!is_active_) return std::nullopt;
  const std::optional<FetchPlan::Outgoing> outgoing = plan_.Next(now);
  if (!outgoing.has_value()) return std::nullopt;
  FetchCall call{.index = outgoing->request,
                 .request = NewArenaMessage<PullRequest>(),
                 .is_narrow = outgoing->is_narrow,
                 .accepts_references = outgoing->by_reference};
  *call.request->mutable_worker() = options_.identity;
  call.request->set_version(outgoing->version.value());
  call.request->set_averages(options_.averages);
  call.request->set_slot(options_.slot);
  if (outgoing->is_narrow) call.request->set_wire_type(ToProto(options_.wire_dtype));
  for (const FetchPlan::Piece& piece : plan_.pieces(outgoing->request)) {
    Describe(targets_[piece.target], piece, UnitBytes(outgoing->is_narrow),
             call.request->add_pieces());
  }
  return call;
}

absl::Status FetchedValues::CopyToTargets(const FetchCall& call, const Reply& reply) const {
  const std::vector<FetchPlan::Piece>& pieces = plan_.pieces(call.index);
  bool matches = reply.header->pieces_size() == static_cast<int>(pieces.size());
  std::vector<std::span<std::byte>> memory;
  std::vector<std::span<float>> elements;
  for (size_t i = 0; matches && i < pieces.size(); ++i) {
    const FetchTarget& target = targets_[pieces[i].target];
    const PullPiece& piece = reply.header->pieces(static_cast<int>(i));
    const uint64_t unit_bytes = UnitBytes(call.is_narrow);
    uint64_t bytes = pieces[i].count * unit_bytes;
    if (call.is_narrow) {
      elements.push_back(target.value.as<float>().subspan(pieces[i].first, pieces[i].count));
    } else {
      memory.push_back(MemoryOf(target, pieces[i]));
      bytes = memory.back().size();
      if (target.in_place && !reply.tensors.references().empty()) memory.back() = {};
    }
    matches = Answers(piece, target, pieces[i], unit_bytes) && piece.size() == bytes;
  }
  if (!matches) return BadReply("other pieces than those asked for");
  const absl::Status copied = call.is_narrow ? reply.tensors.WidenTo(options_.wire_dtype, elements)
                                             : reply.tensors.CopyTo(memory);
  return absl::IsInvalidArgument(copied) ? BadReply(copied.message()) : copied;
}

absl::Status FetchedValues::BadReply(absl::string_view what) const {
  return absl::InternalError(
      absl::StrCat("reply of ", transport_->peer(), " to a request of values: ", what));
}

void FetchedValues::OnReply(const FetchCall& call, absl::StatusOr<Reply> reply,
                            const absl::Status& copied, absl::Duration now) {
  if (!reply.ok()) {
    plan_.OnError(call.index, reply.status(), now);
  } else if (absl::IsAborted(copied)) {
    plan_.OnOverwritten(call.index);
  } else if (!copied.ok()) {
    plan_.OnError(call.index, copied, now);
  } else {
    plan_.OnReply(call.index, GlobalStep(reply->header->version()));
    scalars_.assign(reply->header->scalars().begin(), reply->header->scalars().end());
    in_place_[call.index].reset();  // of an earlier reply to the same request
    if (StaysInPlace(call, reply->tensors)) in_place_[call.index] = std::move(reply->tensors);
  }
}

bool FetchedValues::StaysInPlace(const FetchCall& call, const ReceivedTensors& values) const {
  return !values.references().empty() &&
         std::ranges::any_of(plan_.pieces(call.index), [this](const FetchPlan::Piece& piece) {
           return targets_[piece.target].in_place;
         });
}

std::optional<absl::Duration> FetchedValues::WakeAt() const {
  return is_active_ ? plan_.WakeAt() : std::nullopt;
}

std::optional<absl::StatusOr<GlobalStep>> FetchedValues::TakeResult() {
  if (!is_active_) return std::nullopt;
  std::optional<absl::StatusOr<GlobalStep>> result = plan_.Result();
  if (!result.has_value()) return std::nullopt;
  if (shares_values_ && absl::IsOutOfRange(result->status())) {
    Start(/*shares_values=*/false, FetchKind::kPresent);
    return std::nullopt;
  }
  if (result->ok()) FindValuesInPlace();
  is_active_ = false;
  return result;
}

void FetchedValues::FindValuesInPlace() {
  const bool shows_any =
      std::ranges::any_of(in_place_, [](const auto& values) { return values.has_value(); });
  if (!shows_any) return;
  shown_.assign(targets_.size(), nullptr);
  for (size_t request = 0; request < in_place_.size(); ++request) {
    if (!in_place_[request].has_value()) continue;
    const std::vector<FetchPlan::Piece>& pieces = plan_.pieces(request);
    for (size_t i = 0; i < pieces.size(); ++i) {
      const size_t target = pieces[i].target;
      // A target that stays in place is never cut.
      if (targets_[target].in_place) {
        shown_[target] = in_place_[request]->references()[i].values.data();
      }
    }
  }
}

const void* FetchedValues::Value(size_t target) const {
  const void* const shown = shown_.empty() ? nullptr : shown_[target];
  return shown != nullptr ? shown : targets_[target].value.data;
}

}  // namespace lockstep
