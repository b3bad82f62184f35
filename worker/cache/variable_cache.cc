#include "worker/cache/variable_cache.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<VariableCache>> VariableCache::Create(
    const Placement& placement, std::span<PsData* const> shards, const WorkerIdentity& identity,
    Contents contents) {
  std::unique_ptr<VariableCache> cache(new VariableCache);
  std::vector<std::vector<PullTarget>> targets(shards.size());
  cache->values_.reserve(placement.variables_size());
  for (const VariableSpec& spec : placement.variables()) {
    if (spec.shard() >= shards.size()) {
      return absl::InvalidArgumentError(absl::StrCat("placement: variable ", spec.name(),
                                                     " is on ps ", spec.shard(), ", but there are ",
                                                     shards.size(), " ps"));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(spec));
    cache->values_.emplace_back(type.dtype, type.shape);
    targets[spec.shard()].push_back({VariableId(spec.id()), cache->values_.back().view()});
  }
  for (const Tensor& value : cache->values_) cache->views_.push_back(value.view());
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    if (targets[shard].empty()) continue;
    PullerOptions options;
    options.identity = identity;
    options.averages = contents == kAverages;
    cache->pullers_.push_back(
        std::make_unique<VariablePuller>(shards[shard], options, std::move(targets[shard])));
  }
  return cache;
}

absl::StatusOr<GlobalStep> VariableCache::Fetch(GlobalStep version) {
  absl::BlockingCounter pending(static_cast<int>(pullers_.size()));
  absl::Mutex mutex;
  GlobalStep newest = version;
  absl::Status failure;
  for (const auto& puller : pullers_) {
    puller->Fetch(version, [&](absl::StatusOr<GlobalStep> got) {
      {
        absl::MutexLock lock(&mutex);
        if (got.ok()) {
          newest = std::max(newest, *got);
        } else {
          failure.Update(got.status());
        }
      }
      pending.DecrementCount();
    });
  }
  pending.Wait();
  if (!failure.ok()) return failure;
  return newest;
}

}  // namespace lockstep::worker
