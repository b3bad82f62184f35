// Fetches variables of one version from one ps: small ones together, large ones in chunks, a window
// of requests in flight, repeated when lost. One fetch at a time.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/client/ps_client.h"
#include "common/tensor/tensor.h"
#include "proto/ps.pb.h"

namespace lockstep {

struct PullTarget {
  VariableId variable;
  MutableTensorView value;  // filled by the fetch
};

struct PullerOptions {
  WorkerIdentity identity;
  size_t chunk_bytes = 1024 * 1024;
  int window = 4;
  absl::Duration patience = absl::Seconds(120);  // as PusherOptions
  bool averages = false;                         // as PullRequest.averages
};

class VariablePuller {
 public:
  // `ps` outlives the puller. The targets' memory outlives it too.
  VariablePuller(PsData* ps, const PullerOptions& options, std::vector<PullTarget> targets);
  ~VariablePuller();

  // Fetches all targets in their order at `version`, waiting until it exists. `done` gets the
  // version that all of them have: the one asked for, or a newer one where that is kept no longer
  // (then every target has that one).
  void Fetch(GlobalStep version, Done<GlobalStep> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
