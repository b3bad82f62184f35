// For how long the shards of a job with sync.ps_replicas have been without a copy. Pure. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

struct JobFacts;

class CopyWatch {
 public:
  // `shards`: by shard, as of now. Several times a second.
  void Update(const std::vector<ShardPlace>& shards, absl::Duration now);
  // Adds what is so now, and since when, to the facts of each shard.
  void Describe(const std::vector<ShardPlace>& shards, JobFacts* facts) const;

 private:
  std::vector<std::optional<absl::Duration>> alone_since_;
};

}  // namespace lockstep::chief
