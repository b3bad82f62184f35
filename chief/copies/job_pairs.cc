#include "chief/copies/job_pairs.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/config/shard_names.h"
#include "common/log/log.h"

namespace lockstep::chief {

JobPairs::JobPairs(const JobPairsOptions& options, const std::vector<PsControl*>& ps,
                   Executor* executor, const Clock* clock) {
  const std::vector<std::string>& addresses = options.ps_addresses;
  const std::vector<std::string> names = ShardNames(addresses);
  for (size_t shard = 0; shard < ps.size(); ++shard) {
    const size_t host = (shard + 1) % ps.size();
    pairs_.push_back(std::make_unique<ShardPair>(
        std::make_unique<HomePlace>(names[shard], addresses[shard], ps[shard], executor),
        std::make_unique<HostPlace>(
            HostPlaceOptions{
                .name = names[host],
                .address = addresses[host],
                .connect = [connect = options.connect,
                            shard](const std::string& address) { return connect(shard, address); }},
            ps[host], executor),
        options.patience, executor, clock));
  }
}

void JobPairs::SetAddresses(const std::vector<std::string>& ps_addresses) {
  const std::vector<std::string> names = ShardNames(ps_addresses);
  for (size_t shard = 0; shard < pairs_.size(); ++shard) {
    const size_t host = (shard + 1) % pairs_.size();
    pairs_[shard]->home()->Move(names[shard], ps_addresses[shard]);
    pairs_[shard]->host()->Move(names[host], ps_addresses[host]);
  }
}

std::vector<PsControl*> JobPairs::shards() const {
  std::vector<PsControl*> shards;
  for (const auto& pair : pairs_) shards.push_back(pair.get());
  return shards;
}

void JobPairs::Tick() {
  for (const auto& pair : pairs_) pair->Tick();
  const auto count = [this](auto is) {
    return std::ranges::count_if(pairs_, [is](const auto& pair) { return is(pair->roles()); });
  };
  const bool lacks_copy =
      count([](const PairRoles& roles) { return roles.state() == PairState::kAlone; }) > 0;
  const auto guarded = count([](const PairRoles& roles) { return roles.IsGuarded(); });
  lacks_copy_ |= lacks_copy;
  if (!lacks_copy_ || guarded < std::ssize(pairs_)) return;
  lacks_copy_ = false;
  log::Info("each shard has a copy: the job survives the loss of any one ps again");
}

std::string JobPairs::DescribeUnfinished() const {
  std::vector<std::string> places;
  for (const auto& pair : pairs_) {
    if (std::string place = pair->DescribeUnfinished(); !place.empty()) {
      places.push_back(std::move(place));
    }
  }
  return absl::StrJoin(places, "; ");
}

bool JobPairs::HasAllCopies() const {
  return std::ranges::all_of(pairs_, [](const auto& pair) {
    const PairRoles& roles = pair->roles();
    return roles.IsGuarded() && !roles.is_changing() && !roles.undecided().has_value();
  });
}

std::vector<ShardPlace> JobPairs::places() const {
  std::vector<ShardPlace> places;
  for (const auto& pair : pairs_) {
    const PairRoles& roles = pair->roles();
    ShardPlace& place = places.emplace_back();
    place.set_address(roles.serving_place()->address());
    if (roles.state() == PairState::kPair) {
      place.set_other_address(roles.other_place()->address());
    }
  }
  return places;
}

}  // namespace lockstep::chief
