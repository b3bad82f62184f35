#include "chief/cluster/job_ps.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::chief {

JobPs::JobPs(Connect connect, const std::vector<std::string>& addresses,
             std::shared_ptr<const KnownClusterSpecs> clusters)
    : connect_(std::move(connect)), clusters_(std::move(clusters)) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    ps_.push_back(std::make_unique<ClusterPs>(std::bind_front(connect_, absl::StrCat("ps ", i)),
                                              addresses[i], clusters_));
  }
}

std::vector<PsControl*> JobPs::all() const {
  std::vector<PsControl*> all;
  for (const auto& ps : ps_) all.push_back(ps.get());
  return all;
}

void JobPs::SetAddresses(const std::vector<std::string>& addresses) {
  LOCKSTEP_CHECK(addresses.size() == ps_.size());
  for (size_t i = 0; i < addresses.size(); ++i) ps_[i]->SetAddress(addresses[i]);
}

std::unique_ptr<PsControl> JobPs::ConnectCopy(size_t shard, const std::string& address) const {
  return std::make_unique<ClusterPs>(
      std::bind_front(connect_, absl::StrCat("the copy of ps ", shard)), address, clusters_);
}

}  // namespace lockstep::chief
