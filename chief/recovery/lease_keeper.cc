#include "chief/recovery/lease_keeper.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

// Of its length: a call or two may be late or lost.
constexpr int kRenewalsPerLease = 4;

}  // namespace

LeaseKeeper::LeaseKeeper(RenewLeaseRequest renewal, PsControl* step_shard, Executor* executor,
                         const Clock* clock)
    : renewal_(std::move(renewal)),
      period_(absl::Milliseconds(renewal_.lease_ms()) / kRenewalsPerLease),
      step_shard_(step_shard),
      executor_(executor),
      clock_(clock),
      next_(clock->Monotonic() + period_) {}

void LeaseKeeper::SetCommand(const Command& command) { *renewal_.mutable_command() = command; }

absl::Status LeaseKeeper::MayAnnounce(const Command& next, bool follows_own) const {
  if (!status_.ok()) return status_;
  if (next.job() != command().job()) {
    return absl::AbortedError(absl::StrCat("the ps serve job ", absl::Hex(next.job()), ", not job ",
                                           absl::Hex(command().job()), ": another chief commands"));
  }
  if (follows_own || next.term() <= command().term() + 1) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("another chief has taken term ", next.term() - 1));
}

void LeaseKeeper::Tick() {
  const absl::Duration now = clock_->Monotonic();
  if (is_over_ || now < next_) return;
  next_ = std::max(next_ + period_, now);
  step_shard_->Call(kRenewLease, renewal_,
                    On<RenewLeaseReply>(executor_, [this](const auto& reply) {
                      if (absl::IsAborted(reply.status())) status_ = reply.status();
                    }));
}

void LeaseKeeper::Release(StatusCallback done) {
  RenewLeaseRequest request = renewal_;
  request.set_end(CommandStatus::RELEASED);
  End(std::move(request), std::move(done));
}

void LeaseKeeper::EndJob(const absl::Status& outcome, StatusCallback done) {
  RenewLeaseRequest request = renewal_;
  request.set_end(CommandStatus::JOB_OVER);
  request.set_exit_code(static_cast<int>(ExitCodeFor(outcome)));
  request.set_reason(std::string(outcome.message()));
  End(std::move(request), std::move(done));
}

void LeaseKeeper::End(RenewLeaseRequest request, StatusCallback done) {
  Stop();
  step_shard_->Call(
      kRenewLease, request,
      On<RenewLeaseReply>(executor_, [done = std::move(done)](const auto& reply) mutable {
        done(reply.status());
      }));
}

}  // namespace lockstep::chief
