#include "ps/service/worker_check.h"

#include <optional>
#include <span>

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

// A list in a message, and the fields that lead to it.
struct BoundedList {
  absl::string_view name;
  std::span<const int> path;
};

constexpr int kPushPieces[] = {PushRequest::kPiecesFieldNumber};
constexpr int kMeanOf[] = {PushRequest::kMeanOfFieldNumber};
constexpr int kNextPieces[] = {PushRequest::kNextFieldNumber, NextRequest::kPullFieldNumber,
                               PullRequest::kPiecesFieldNumber};
constexpr BoundedList kListsOfPush[] = {
    {"pieces", kPushPieces}, {"mean_of", kMeanOf}, {"next.pull.pieces", kNextPieces}};

absl::Status CheckSender(absl::string_view message, const Shard& shard) {
  const std::optional<absl::string_view> field =
      wire::FindField(message, PushRequest::kWorkerFieldNumber);
  lockstep::WorkerIdentity worker;
  if (!field.has_value() ||
      !worker.ParseFromArray(field->data(), static_cast<int>(field->size()))) {
    return absl::InvalidArgumentError("a message without `worker`");
  }
  return shard.Admit(FromProto(worker));
}

absl::Status CheckLength(absl::string_view message, const BoundedList& list) {
  const std::optional<size_t> count = wire::CountFields(message, list.path);
  if (!count.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", message.size(),
                                                   " bytes is malformed. Remedy: call with a "
                                                   "worker of this version"));
  }
  if (*count <= limits::kMaxPieces) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("`", list.name, "` has ", *count,
                                                 " entries, at most ", limits::kMaxPieces,
                                                 " fit a message. Remedy: send several messages"));
}

absl::Status Check(absl::string_view message, std::span<const BoundedList> lists,
                   const Shard& shard) {
  if (message.size() <= kShortMessage) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckSender(message, shard));
  for (const BoundedList& list : lists) LOCKSTEP_RETURN_IF_ERROR(CheckLength(message, list));
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUnparsed(absl::string_view message, int pieces, const Shard& shard) {
  const BoundedList list = {"pieces", {&pieces, 1}};
  return Check(message, {&list, 1}, shard);
}

absl::Status CheckUnparsedPush(absl::string_view message, const Shard& shard) {
  return Check(message, kListsOfPush, shard);
}

}  // namespace lockstep::ps
