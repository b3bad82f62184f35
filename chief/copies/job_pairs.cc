#include "chief/copies/job_pairs.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {

JobPairs::JobPairs(const JobPairsOptions& options, const std::vector<PsControl*>& ps,
                   Executor* executor, const Clock* clock) {
  const std::vector<std::string>& addresses = options.ps_addresses;
  const auto name = [&](size_t i) { return absl::StrCat("ps ", i, " (", addresses[i], ")"); };
  for (size_t shard = 0; shard < ps.size(); ++shard) {
    const size_t host = (shard + 1) % ps.size();
    pairs_.push_back(std::make_unique<ShardPair>(
        std::make_unique<HomePlace>(name(shard), addresses[shard], ps[shard], executor),
        std::make_unique<HostPlace>(
            HostPlaceOptions{
                .name = name(host),
                .address = addresses[host],
                .connect = [connect = options.connect,
                            shard](const std::string& address) { return connect(shard, address); }},
            ps[host], executor),
        options.patience, executor, clock));
  }
}

std::vector<PsControl*> JobPairs::shards() const {
  std::vector<PsControl*> shards;
  for (const auto& pair : pairs_) shards.push_back(pair.get());
  return shards;
}

void JobPairs::Tick() {
  for (const auto& pair : pairs_) pair->Tick();
}

std::vector<std::string> JobPairs::copy_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& pair : pairs_) addresses.push_back(pair->roles().place(kHost)->address());
  return addresses;
}

std::vector<uint32_t> JobPairs::moved_shards() const {
  std::vector<uint32_t> moved;
  for (uint32_t shard = 0; shard < pairs_.size(); ++shard) {
    if (pairs_[shard]->roles().serving() == kHost) moved.push_back(shard);
  }
  return moved;
}

}  // namespace lockstep::chief
