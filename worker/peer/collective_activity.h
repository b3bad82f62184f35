// What the parts of a collective tell it: that they are at work, and that it cannot go on.
#pragma once

#include "absl/status/status.h"

namespace lockstep::worker {

// Thread-safe. Never called under a lock.
class CollectiveActivity {
 public:
  virtual ~CollectiveActivity() = default;
  // Between these two a part is at work: the reduction does not end meanwhile, and nothing that it
  // uses goes.
  virtual void Enter() = 0;
  virtual void Leave() = 0;
  // The first failure ends the collective.
  virtual void Fail(absl::Status failure) = 0;
  // OK until then.
  virtual absl::Status failure() const = 0;
};

}  // namespace lockstep::worker
