#include "chief/job/copy_watch.h"

#include "chief/job/job_facts.h"

namespace lockstep::chief {

void CopyWatch::Update(const std::vector<ShardCopy>& shards, absl::Duration now) {
  alone_since_.resize(shards.size());
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    std::optional<absl::Duration>& since = alone_since_[shard];
    if (!shards[shard].copy.empty()) {
      since.reset();
    } else if (!since.has_value()) {
      since = now;
    }
  }
}

void CopyWatch::Describe(const std::vector<ShardCopy>& shards, JobFacts* facts) const {
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    ShardFacts& of = facts->shards[shard];
    of.copy = shards[shard];
    if (!of.copy.copy.empty() || shard >= alone_since_.size()) continue;
    of.without_copy = facts->now - alone_since_[shard].value_or(facts->now);
  }
}

}  // namespace lockstep::chief
