// For how long the shards of a job with sync.ps_replicas have been without a copy. Pure. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace lockstep::chief {

struct JobFacts;

// "host:port" of both.
struct ShardCopy {
  std::string serving;  // of the ps that serves the workers
  std::string copy;     // of the ps with a copy that lacks nothing; empty: none
};

class CopyWatch {
 public:
  // `shards`: by shard, as of now. Several times a second.
  void Update(const std::vector<ShardCopy>& shards, absl::Duration now);
  // Adds what is so now, and since when, to the facts of each shard.
  void Describe(const std::vector<ShardCopy>& shards, JobFacts* facts) const;

 private:
  std::vector<std::optional<absl::Duration>> alone_since_;
};

}  // namespace lockstep::chief
