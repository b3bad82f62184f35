// The cluster spec from and to its message.
#pragma once

#include "common/config/cluster_spec.h"
#include "proto/cluster.pb.h"

namespace lockstep {

// As it is written: ValidateCluster has not seen it.
ClusterSpec FromProto(const ClusterDef& def);
ClusterDef ToProto(const ClusterSpec& spec);

}  // namespace lockstep
