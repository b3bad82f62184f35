// A ps of the cluster spec, wherever that says it is. Each SetView and WatchCommand says by which
// cluster specs this chief is known.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/base/callback.h"
#include "common/client/ps_control.h"
#include "common/config/known_cluster_specs.h"

namespace lockstep::chief {

// SetAddress and Start: on one thread, that of the chief's executor.
class ClusterPs final : public PsControl {
 public:
  using Connect = std::function<std::unique_ptr<PsControl>(const std::string& address)>;

  ClusterPs(Connect connect, std::string address,
            std::shared_ptr<const KnownClusterSpecs> clusters);

  // Calls under way end with UNAVAILABLE, before this returns.
  ~ClusterPs() override { connection_.is_left->store(true); }

  // Calls go there from now on. Those under way end with UNAVAILABLE, before this returns.
  void SetAddress(const std::string& address);

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override;

 private:
  // To one address.
  struct Connection {
    std::shared_ptr<std::atomic<bool>> is_left;  // shared with the calls under way
    std::unique_ptr<PsControl> ps;
  };
  Connection ConnectTo(const std::string& address) const;

  const Connect connect_;
  const std::shared_ptr<const KnownClusterSpecs> clusters_;
  std::string address_;
  Connection connection_;
};

}  // namespace lockstep::chief
