#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

void Shard::Impl::Pull(const PullOrder& order, Done<PullResult> done) {
  Outbox outbox;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Status admitted = AdmitWorker(order.worker);
    auto pieces = admitted.ok() ? state_->catalog.ResolvePull(order) : admitted;
    if (!pieces.ok()) {
      outbox.Answer<PullResult>(std::move(done), pieces.status());
    } else {
      ParkedPull pull{order.worker, order.version, *std::move(pieces), std::move(done)};
      if (std::optional<PullResult> result = TryPull(*state_, pull)) {
        outbox.Answer<PullResult>(std::move(pull.done), *std::move(result));
      } else if (phase_ == Phase::kFinished) {
        outbox.Answer<PullResult>(std::move(pull.done), absl::CancelledError("the job is over"));
      } else {
        pulls_.Park(std::move(pull), &outbox);
      }
    }
  }
  outbox.Run();
}

// One version for all pieces: the one asked for, or, where that is kept no longer, the newest that
// all of them have.
std::optional<PullResult> Shard::Impl::TryPull(const HostedState& state, const ParkedPull& pull) {
  const auto result_at = [&](GlobalStep version, auto value_of) {
    PullResult result{version, {}};
    result.pieces.reserve(pull.pieces.size());
    for (const ResolvedPiece& piece : pull.pieces) {
      std::shared_ptr<const Tensor> value = value_of(piece.variable);
      const std::span<const std::byte> bytes =
          value->view().bytes().subspan(piece.offset, piece.size);
      result.pieces.push_back(
          {state.catalog[piece.variable].id, piece.offset, bytes, std::move(value)});
    }
    return result;
  };
  const auto variable_of = [&](size_t variable) -> const Variable& {
    return state.variables[variable]->variable;
  };

  if (const auto kept = state.snapshots.Find(pull.version)) {
    return result_at(pull.version, [&](size_t variable) { return kept->values[variable]; });
  }
  GlobalStep newest = variable_of(pull.pieces.front().variable).newest_version();
  bool is_kept = true;
  for (const ResolvedPiece& piece : pull.pieces) {
    const Variable& variable = variable_of(piece.variable);
    newest = std::min(newest, variable.newest_version());
    is_kept = is_kept && variable.At(pull.version) != nullptr;
  }
  if (pull.version > newest) return std::nullopt;
  const GlobalStep version = is_kept ? pull.version : newest;
  return result_at(version, [&](size_t variable) { return variable_of(variable).At(version); });
}

void Shard::Impl::RetryPulls(Outbox* outbox) {
  const HostedState& state = *state_;
  pulls_.Retry([&state](const ParkedPull& pull) { return TryPull(state, pull); }, outbox);
}

}  // namespace lockstep::ps
