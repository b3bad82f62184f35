// The connections of a chief to the ps of its cluster spec, and to the copies that these keep.
//
// Lives on the executor's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "chief/cluster/cluster_ps.h"
#include "common/client/ps_control.h"
#include "common/config/known_cluster_specs.h"

namespace lockstep::chief {

class JobPs {
 public:
  // `name`: "ps 1", for messages.
  using Connect = std::function<std::unique_ptr<PsControl>(const std::string& name,
                                                           const std::string& address)>;

  // `addresses` by task index.
  JobPs(Connect connect, const std::vector<std::string>& addresses,
        std::shared_ptr<const KnownClusterSpecs> clusters);

  // By task index; valid as long as this.
  std::vector<PsControl*> all() const;
  // As many as before. Those that have moved are called at their new addresses.
  void SetAddresses(const std::vector<std::string>& addresses);
  // To the copy of the shard of ps `shard`, which another ps keeps at `address`.
  std::unique_ptr<PsControl> ConnectCopy(size_t shard, const std::string& address) const;

 private:
  const Connect connect_;
  const std::shared_ptr<const KnownClusterSpecs> clusters_;
  std::vector<std::unique_ptr<ClusterPs>> ps_;
};

}  // namespace lockstep::chief
