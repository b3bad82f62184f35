#include "ps/service/worker_check.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/wire/byte_buffer.h"
#include "proto/ps.pb.h"
#include "ps/service/convert.h"

namespace lockstep::ps {
namespace {

// Parsing takes 0.1 ms for so many bytes: less than it takes to find out by whom a shorter message
// is.
constexpr size_t kShortMessage = 64 << 10;

static_assert(int{PushRequest::kWorkerFieldNumber} == int{PullRequest::kWorkerFieldNumber});
static_assert(int{PushRequest::kWorkerFieldNumber} == int{StoreVersionRequest::kWorkerFieldNumber});
static_assert(int{PushRequest::kWorkerFieldNumber} == int{PutStateRequest::kWorkerFieldNumber});

}  // namespace

absl::Status CheckUnparsed(absl::string_view message, int pieces, const Shard& shard) {
  if (message.size() <= kShortMessage) return absl::OkStatus();
  const std::optional<absl::string_view> field =
      wire::FindField(message, PushRequest::kWorkerFieldNumber);
  lockstep::WorkerIdentity worker;
  if (!field.has_value() ||
      !worker.ParseFromArray(field->data(), static_cast<int>(field->size()))) {
    return absl::InvalidArgumentError("a message without `worker`");
  }
  LOCKSTEP_RETURN_IF_ERROR(shard.Admit(FromProto(worker)));
  const size_t count = wire::CountFields(message, pieces);
  if (count <= limits::kMaxPieces) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`pieces` has ", count, " entries, at most ",
                                                 limits::kMaxPieces,
                                                 " fit a message. Remedy: send several messages"));
}

}  // namespace lockstep::ps
