#include "ps/shard/shard.h"

#include <utility>

#include "ps/shard/shard_impl.h"

namespace lockstep::ps {

Shard::Shard(const ShardOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Shard::~Shard() { impl_->Stop(); }

ShardState Shard::GetView() const { return impl_->GetView(); }

absl::StatusOr<ShardState> Shard::SetView(const View& view) { return impl_->SetView(view); }

absl::StatusOr<CreatedVariables> Shard::CreateVariables(const CreateVariablesRequest& request) {
  return impl_->CreateVariables(request);
}

void Shard::Grant(const GrantOrder& order, Callback<ClosedStep> done) {
  impl_->Grant(order, std::move(done));
}

absl::StatusOr<GlobalStep> Shard::CommitStep(const Command& command, GlobalStep step, bool last) {
  return impl_->CommitStep(command, step, last);
}

absl::StatusOr<SavedShard> Shard::Save(const Command& command, GlobalStep version,
                                       const std::string& folder) {
  return impl_->Save(command, version, folder);
}

absl::Status Shard::ReleaseSnapshot(const Command& command, GlobalStep version,
                                    const std::optional<EvaluatedVersion>& evaluation) {
  return impl_->ReleaseSnapshot(command, version, evaluation);
}

absl::Status Shard::Finish(const Command& command) { return impl_->Finish(command); }

absl::Status Shard::Admit(const Command& command) const { return impl_->Admit(command); }

absl::Status Shard::Admit(const WorkerIdentity& worker) const { return impl_->Admit(worker); }

absl::StatusOr<PushResult> Shard::Push(const PushOrder& order) { return impl_->Push(order); }

void Shard::Pull(const PullOrder& order, Callback<PullResult> done) {
  impl_->Pull(order, std::move(done));
}

void Shard::DequeueToken(const DequeueOrder& order, Callback<Token> done) {
  impl_->DequeueToken(order, std::move(done));
}

void Shard::CancelPull(PullTicket* ticket) { impl_->CancelPull(ticket); }

void Shard::Stop() { impl_->Stop(); }

ShardReport Shard::Report() const { return impl_->Report(); }

}  // namespace lockstep::ps
