#include "worker/service/shard_options.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

// As which tensors travel, where they do.
DType WireTypeOf(const JobDef& job) {
  switch (job.transport().wire_type()) {
    case BFLOAT16:
      return DType::kBFloat16;
    case FLOAT16:
      return DType::kFloat16;
    default:
      return DType::kFloat32;
  }
}

}  // namespace

ShardGroupOptions ShardOptionsOf(const JobDef& job, const WorkerIdentity& identity,
                                 std::span<const std::string> ps_addresses,
                                 absl::Duration patience) {
  ShardGroupOptions options;
  options.session.identity = identity;
  options.session.asynchronous = job.sync().has_asynchronous();
  options.token_per_replica =
      !options.session.asynchronous && job.sync().token_policy() == PER_REPLICA;
  options.shards_may_move = job.sync().ps_replicas() > 0;
  options.session.wire_dtype = WireTypeOf(job);
  options.session.patience = patience;
  for (size_t shard = 0; shard < ps_addresses.size(); ++shard) {
    options.shard_names.push_back(absl::StrCat("ps ", shard, " (", ps_addresses[shard], ")"));
  }
  return options;
}

}  // namespace lockstep::worker
