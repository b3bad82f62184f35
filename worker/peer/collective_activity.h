// CollectiveActivity lets the parts of a collective report to it that they are working or failed.
#pragma once

#include "absl/status/status.h"

namespace lockstep::worker {

// Thread-safe. Never called under a lock.
class CollectiveActivity {
 public:
  virtual ~CollectiveActivity() = default;
  // A part calls Enter before it works and Leave after. In between the reduction does not end, and
  // everything that the part uses stays valid.
  virtual void Enter() = 0;
  virtual void Leave() = 0;
  // The first failure ends the collective.
  virtual void Fail(absl::Status failure) = 0;
  // OK until the first Fail.
  virtual absl::Status failure() const = 0;
};

}  // namespace lockstep::worker
