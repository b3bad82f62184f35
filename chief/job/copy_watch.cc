#include "chief/job/copy_watch.h"

#include "chief/job/job_facts.h"

namespace lockstep::chief {

void CopyWatch::Update(const std::vector<ShardPlace>& shards, absl::Duration now) {
  alone_since_.resize(shards.size());
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    std::optional<absl::Duration>& since = alone_since_[shard];
    if (!shards[shard].other_address().empty()) {
      since.reset();
    } else if (!since.has_value()) {
      since = now;
    }
  }
}

void CopyWatch::Describe(const std::vector<ShardPlace>& shards, JobFacts* facts) const {
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    ShardFacts& of = facts->shards[shard];
    of.place = shards[shard];
    if (!of.place.other_address().empty() || shard >= alone_since_.size()) continue;
    of.without_copy = facts->now - alone_since_[shard].value_or(facts->now);
  }
}

}  // namespace lockstep::chief
