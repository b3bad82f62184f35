#include "ps/service/command_calls.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/limits.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace lockstep::ps {
namespace {

LeaseHolder HolderOf(Term term, const Command& command, uint32_t index, uint32_t lease_ms) {
  return {.term = term,
          .chief = Incarnation(command.chief()),
          .index = index,
          .length = lease_ms == 0 ? absl::InfiniteDuration() : absl::Milliseconds(lease_ms)};
}

}  // namespace

void NoteView(const SetViewRequest& view, CommandWatch* watch) {
  if (view.shard() != kStepShard) return;
  watch->Renew(
      HolderOf(Term(view.command().term()), view.command(), view.chief_index(), view.lease_ms()));
}

absl::StatusOr<RenewLeaseReply> HandleRenewLease(const Shard& shard,
                                                 const RenewLeaseRequest& request,
                                                 CommandWatch* watch) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Term term, shard.TermOf(request.command()));
  const Incarnation chief(request.command().chief());
  switch (request.end()) {
    case CommandStatus::NONE:
      watch->Renew(HolderOf(term, request.command(), request.chief_index(), request.lease_ms()));
      break;
    case CommandStatus::RELEASED:
      watch->Release(chief);
      break;
    case CommandStatus::JOB_OVER:
      watch->EndJob(chief, request.exit_code(),
                    Printable(request.reason(), limits::kMaxErrorBytes));
      break;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("end: expected RELEASED or JOB_OVER, got ", request.end()));
  }
  return RenewLeaseReply();
}

}  // namespace lockstep::ps
