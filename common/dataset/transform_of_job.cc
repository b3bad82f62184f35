#include "common/dataset/transform_of_job.h"

#include <algorithm>

namespace lockstep {
namespace {

using Kind = TransformStep::Kind;

TransformStep ShardOf(const ReplicaOf& replica) {
  return {.kind = Kind::kShard, .size = replica.num_replicas, .index = replica.replica};
}

}  // namespace

FileShard FileShardOf(const DataDef& data, const ReplicaOf& replica) {
  if (data.auto_shard() != DataDef::FILE) return {};
  return {.index = replica.replica, .count = replica.num_replicas};
}

int64_t ExamplesOf(absl::Span<const int64_t> by_file, const FileShard& shard) {
  const int64_t files = static_cast<int64_t>(by_file.size());
  int64_t sum = 0;
  for (int64_t file = shard.index; file < files; file += shard.count) sum += by_file[file];
  return sum;
}

std::vector<TransformStep> TransformStepsOf(const DataDef& data, const ReplicaOf& replica,
                                            int64_t batch) {
  std::vector<TransformStep> steps;
  if (data.auto_shard() == DataDef::RECORD &&
      std::ranges::none_of(data.transform(), &DataTransform::has_shard)) {
    steps.push_back(ShardOf(replica));
  }
  for (const DataTransform& transform : data.transform()) {
    switch (transform.kind_case()) {
      case DataTransform::kShard:
        steps.push_back(ShardOf(replica));
        break;
      case DataTransform::kRepeat:
        steps.push_back({.kind = Kind::kRepeat, .size = transform.repeat().count()});
        break;
      case DataTransform::kShuffle:
        steps.push_back({.kind = Kind::kShuffle, .size = transform.shuffle().buffer()});
        break;
      case DataTransform::kMap:
        if (transform.map().function() == "shift") steps.push_back({.kind = Kind::kShift});
        break;
      case DataTransform::kBatch:
        steps.push_back({.kind = Kind::kBatch,
                         .size = batch,
                         .drop_remainder = transform.batch().drop_remainder()});
        break;
      case DataTransform::kPrefetch:
      case DataTransform::KIND_NOT_SET:
        break;
    }
  }
  return steps;
}

}  // namespace lockstep
