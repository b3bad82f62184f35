// Checks that a process that registers can be a worker of this job.
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

// Returns the fields of `request` that a waiting registration needs. Of the cluster specs it keeps
// only the caller's own address, for TakeAddress; it keeps no unknown fields. `request` has passed
// CheckNewcomer. The result takes less than 4 KiB.
RegisterTaskRequest ParkedPartOf(const RegisterTaskRequest& request);

// Sets the address of a worker that registers, from its own cluster spec. Changes nothing while a
// process of its index lives: the caller is then a second one by mistake. In an elastic job a
// worker that is not a member becomes one.
void TakeAddress(const RegisterTaskRequest& request, bool is_elastic, Membership* membership);

}  // namespace lockstep::chief
