#include "common/config/cluster_proto.h"

namespace lockstep {

ClusterSpec FromProto(const ClusterDef& def) {
  ClusterSpec spec;
  spec.ps.assign(def.ps().begin(), def.ps().end());
  spec.workers.assign(def.worker().begin(), def.worker().end());
  if (!def.chief().empty()) {
    spec.chief = def.chief(0);
    spec.other_chiefs.assign(def.chief().begin() + 1, def.chief().end());
  }
  return spec;
}

ClusterDef ToProto(const ClusterSpec& spec) {
  ClusterDef def;
  def.mutable_ps()->Assign(spec.ps.begin(), spec.ps.end());
  def.mutable_worker()->Assign(spec.workers.begin(), spec.workers.end());
  const std::vector<std::string> chiefs = spec.chiefs();
  def.mutable_chief()->Assign(chiefs.begin(), chiefs.end());
  return def;
}

}  // namespace lockstep
