#include "ps/service/worker_check.h"

#include <optional>

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

absl::Status CheckSender(absl::string_view message, const Shard& shard) {
  if (message.size() <= kShortMessage) return absl::OkStatus();
  const std::optional<absl::string_view> field =
      wire::FindField(message, PushRequest::kWorkerFieldNumber);
  lockstep::WorkerIdentity worker;
  if (!field.has_value() ||
      !worker.ParseFromArray(field->data(), static_cast<int>(field->size()))) {
    return absl::InvalidArgumentError("a message without `worker`");
  }
  return shard.Admit(FromProto(worker));
}

}  // namespace lockstep::ps
