// Whether a process that registers can be a worker of this job at all.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "proto/chief.pb.h"

namespace lockstep::chief {

// `cluster`: the chief's canonical text. The spec of a worker of an elastic job may have other
// workers and addresses, but as many ps, and must have the worker itself. FAILED_PRECONDITION:
// another cluster spec or version. INVALID_ARGUMENT: a request above the limits; an index that its
// own spec does not have.
absl::Status CheckNewcomer(const RegisterTaskRequest& request, const std::string& cluster,
                           bool is_elastic);

}  // namespace lockstep::chief
