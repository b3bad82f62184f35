#include "worker/service/check_registration.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/checked.h"
#include "common/base/limits.h"
#include "common/base/status_macros.h"
#include "common/client/known_enums.h"
#include "common/config/address.h"

namespace lockstep::worker {
namespace {

constexpr char kWhere[] = "the chief's reply to RegisterTask";
constexpr char kRemedy[] = ". Remedy: run the same version everywhere";

absl::Status CheckRange(absl::string_view field, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": expected ", least, " to ", most, ", got ", value));
}

// Every example of every step has a number.
absl::Status CheckExamples(const RegisterTaskReply& reply) {
  const JobDef& job = reply.job();
  std::optional<int64_t> examples = reply.max_steps();
  for (const int64_t factor : {int64_t{reply.total_num_replicas()},
                               std::max(job.towers(), int64_t{1}), job.batch_per_tower()}) {
    if (examples.has_value()) examples = CheckedMultiply(*examples, factor);
  }
  if (examples.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("max_steps: ", reply.max_steps(), " steps of ", reply.total_num_replicas(),
                   " replicas with ", job.towers(), " towers and ", job.batch_per_tower(),
                   " examples are more than 2^63 examples"));
}

absl::Status CheckPlaces(const RegisterTaskReply& reply, size_t num_ps) {
  if (reply.shards().empty()) return absl::OkStatus();
  const auto expected = static_cast<int64_t>(num_ps);
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("shards", reply.shards_size(), expected, expected));
  for (const ShardPlace& place : reply.shards()) {
    LOCKSTEP_RETURN_IF_ERROR(Annotate(ParseAddress(place.address()).status(), "shards.address"));
    if (place.other_address().empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(
        Annotate(ParseAddress(place.other_address()).status(), "shards.other_address"));
  }
  return absl::OkStatus();
}

absl::Status Check(const RegisterTaskReply& reply, uint32_t worker, size_t num_ps) {
  LOCKSTEP_RETURN_IF_ERROR(CheckEnums(reply));
  const JobDef& job = reply.job();
  // Where workers come and go the index of one that came later may be any.
  const int64_t least = reply.has_share() ? 1 : int64_t{worker} + 1;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("total_num_replicas", reply.total_num_replicas(), least, limits::kMaxReplicas));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("replicas_to_aggregate", reply.replicas_to_aggregate(), 1, limits::kMaxReplicas));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("max_steps", reply.max_steps(), 1, std::numeric_limits<int64_t>::max()));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("lease_ms", reply.lease_ms(), 1, std::numeric_limits<int32_t>::max()));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("start_step", reply.start_step(), 0, reply.max_steps()));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("placement.shards", reply.placement().shards(),
                                      static_cast<int64_t>(num_ps), static_cast<int64_t>(num_ps)));
  LOCKSTEP_RETURN_IF_ERROR(CheckRange("job.towers", job.towers(), 0, limits::kMaxTowers));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("job.batch_per_tower", job.batch_per_tower(), 1, limits::kMaxBatch));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("job.evaluation.batch", job.evaluation().batch(), 1, limits::kMaxBatch));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRange("job.data.prefetch", job.data().prefetch(), 0, limits::kMaxPrefetch));
  LOCKSTEP_RETURN_IF_ERROR(CheckPlaces(reply, num_ps));
  return CheckExamples(reply);
}

}  // namespace

absl::Status CheckRegistration(const RegisterTaskReply& reply, uint32_t worker, size_t num_ps) {
  absl::Status status = Check(reply, worker, num_ps);
  if (status.ok()) return status;
  return WithMessage(status, absl::StrCat(kWhere, ": ", status.message(), kRemedy));
}

}  // namespace lockstep::worker
