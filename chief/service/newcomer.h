// Whether a process that registers can be a worker of this job at all.
#pragma once

#include "absl/status/status.h"
#include "chief/membership/membership.h"
#include "common/config/known_cluster_specs.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

// `clusters`: the chief's. The spec of a worker of an elastic job may have other workers, and must
// have the worker itself. FAILED_PRECONDITION: another cluster, or version. INVALID_ARGUMENT: a
// request above the limits; an index that its own spec does not have.
absl::Status CheckNewcomer(const RegisterTaskRequest& request, const KnownClusterSpecs& clusters,
                           bool is_elastic);

// What a registration that waits needs of `request`, which has passed CheckNewcomer: of the cluster
// specs the caller's own address alone, for TakeAddress, and no unknown fields. It takes less than
// 4 KiB.
RegisterTaskRequest ParkedPartOf(const RegisterTaskRequest& request);

// The address of a worker that comes, or comes back, is that in its own cluster spec. While a
// process of its index lives, it is a second one by mistake, and changes nothing. A worker that is
// none of the members becomes one if the job is elastic.
void TakeAddress(const RegisterTaskRequest& request, bool is_elastic, Membership* membership);

}  // namespace lockstep::chief
