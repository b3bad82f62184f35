// The shards of a job with sync.ps_replicas: a pair for each, whose host is the next ps in the
// ring.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/copies/shard_pair.h"
#include "chief/loop/executor.h"
#include "common/base/clock.h"
#include "common/client/ps_control.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

struct JobPairsOptions {
  std::vector<std::string> ps_addresses;
  absl::Duration patience;  // with a ps that is silent
  // To the copy server of shard `shard`, at `address`.
  std::function<std::unique_ptr<PsControl>(size_t shard, const std::string& address)> connect;
};

class JobPairs {
 public:
  // `ps`: the main server of each. The rest as ShardPair.
  JobPairs(const JobPairsOptions& options, const std::vector<PsControl*>& ps, Executor* executor,
           const Clock* clock);

  // By shard; valid as long as this.
  std::vector<PsControl*> shards() const;
  // Looks after all pairs. Several times a second.
  void Tick();

  // As many as before: those that have moved are looked for at their new addresses. `ps` call them
  // there already.
  void SetAddresses(const std::vector<std::string>& ps_addresses);

  // Of a job that is over: the places that have not answered that, beside those that serve, and
  // why. Empty: all have.
  std::string DescribeUnfinished() const;

  // Each shard has a copy that takes its place if need be: both ps obey this chief, and neither may
  // have been told to serve alone.
  bool HasAllCopies() const;

  // By shard, for the workers.
  std::vector<ShardPlace> places() const;

 private:
  std::vector<std::unique_ptr<ShardPair>> pairs_;
  bool lacks_copy_ = false;  // since all have had one
};

}  // namespace lockstep::chief
