// The cluster spec of a chief, as its workers are compared with and told.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "common/config/known_cluster_specs.h"
#include "proto/cluster.pb.h"

namespace lockstep::chief {

class ToldCluster {
 public:
  // `known`: of this chief, `newest` among them.
  ToldCluster(std::shared_ptr<const KnownClusterSpecs> known, ClusterDef newest)
      : known_(std::move(known)), newest_(std::move(newest)) {}

  void Set(ClusterDef newest) {
    newest_ = std::move(newest);
    ++number_;
  }

  const KnownClusterSpecs& known() const { return *known_; }
  const ClusterDef& newest() const { return newest_; }
  // Counts the specs, from 1.
  uint64_t number() const { return number_; }
  // It is not the one that this process was started with.
  bool has_changed() const { return number_ > 1; }

 private:
  const std::shared_ptr<const KnownClusterSpecs> known_;
  ClusterDef newest_;
  uint64_t number_ = 1;
};

}  // namespace lockstep::chief
