// ShardPlaces holds the addresses of the shards of a job with sync.ps_replicas, for workers. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "proto/chief.pb.h"

namespace lockstep::chief {

class ShardPlaces {
 public:
  // By shard. Returns whether an address differs from the previous ones.
  bool Set(std::vector<ShardPlace> shards) {
    const auto is_same = [](const ShardPlace& place, const ShardPlace& before) {
      return place.address() == before.address() && place.other_address() == before.other_address();
    };
    if (std::ranges::equal(shards, shards_, is_same)) return false;
    shards_ = std::move(shards);
    ++number_;
    return true;
  }

  // Counts the changes.
  uint64_t number() const { return number_; }

  // `Reply` has a field `shards`.
  template <typename Reply>
  void AddTo(Reply* reply) const {
    reply->mutable_shards()->Add(shards_.begin(), shards_.end());
  }

 private:
  std::vector<ShardPlace> shards_;
  uint64_t number_ = 0;
};

}  // namespace lockstep::chief
