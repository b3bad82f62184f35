// A variable cache with sessions of its own.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/await.h"
#include "common/base/callback.h"
#include "common/client/shard_session.h"
#include "tests/support/thread_timer.h"
#include "worker/cache/variable_cache.h"

namespace lockstep::worker::test {

class FetchedVariables {
 public:
  // What is passed outlives this. `options` of an asynchronous job: the newest values are fetched.
  FetchedVariables(const VariableLayout& layout, std::span<TensorTransport* const> shards,
                   const SessionOptions& options)
      : is_newest_(options.asynchronous) {
    std::vector<ShardSession*> pointers;
    for (TensorTransport* shard : shards) {
      sessions_.push_back(std::make_unique<ShardSession>(options, shard, &timer_));
      pointers.push_back(sessions_.back().get());
    }
    cache_ = *VariableCache::Create(layout, pointers);
  }
  FetchedVariables(const VariableLayout& layout, std::span<TensorTransport* const> shards,
                   const WorkerIdentity& identity, bool asynchronous)
      : FetchedVariables(layout, shards, OptionsOf(identity, asynchronous)) {}

  // The version; of the newest values the newest one.
  absl::StatusOr<GlobalStep> Fetch(GlobalStep version,
                                   std::span<const std::span<const int64_t>> rows) {
    return Await<GlobalStep>([&](Callback<GlobalStep> done) {
      if (is_newest_) return cache_->FetchNewest(rows, std::move(done));
      cache_->Fetch(version, rows, std::move(done));
    });
  }
  VariableCache* operator->() { return cache_.get(); }
  VariableCache& operator*() { return *cache_; }

 private:
  static SessionOptions OptionsOf(const WorkerIdentity& identity, bool asynchronous) {
    SessionOptions options;
    options.identity = identity;
    options.asynchronous = asynchronous;
    return options;
  }

  const bool is_newest_;
  ThreadTimer timer_;
  std::unique_ptr<VariableCache> cache_;
  std::vector<std::unique_ptr<ShardSession>> sessions_;  // fill the cache
};

}  // namespace lockstep::worker::test
