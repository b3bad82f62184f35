// Fetches variables of one version from one ps: small ones together, large ones in chunks, whole or
// by rows, a window of requests in flight, repeated when lost. One fetch at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
  // Filled by the fetch; of a target without elements nothing is fetched.
  MutableTensorView value;
  // Of a sparse variable: fetches these rows alone, value[i] is row rows[i].
  std::optional<std::span<const int64_t>> rows = {};
  // Where the ps shows its values, `value` stays as it is, and Value tells where they are.
  bool in_place = false;
  // Travels in its own type, whatever the wire type: what new values are made from, as statistics
  // are, would stick to the numbers that it is rounded to.
  bool as_it_is = false;
};

struct PullerOptions {
  WorkerIdentity identity;
  size_t chunk_bytes = 1024 * 1024;
  // Of what is copied out of the ps's memory: large, since no byte is sent, but as bytes it fits a
  // message, too. What stays there is asked for at once.
  size_t in_memory_chunk_bytes = 4 * 1024 * 1024;
  int window = 4;
  absl::Duration patience = absl::Seconds(120);  // as PusherOptions
  bool averages = false;                         // as PullRequest.averages
  // As which dense float32 values travel that need not as they are: float32, bfloat16 or float16.
  // From a ps with which memory is exchanged (PsData::SharesMemory) always as they are.
  DType wire_type = DType::kFloat32;
  // Of an asynchronous job: whatever version each ps has now, not one for all targets.
  bool newest = false;
};

// How many requests of a fetch are in flight.
enum class PullAhead {
  kWindow,      // PullerOptions.window: of values that are there
  kEverything,  // of a version to come: each variable arrives when it is made, in whatever order
};

class VariablePuller {
 public:
  // `ps` outlives the puller. Memory and rows of the targets stay while a fetch is under way.
  VariablePuller(PsData* ps, const PullerOptions& options, std::vector<PullTarget> targets);
  ~VariablePuller();

  // Other memory or rows for a target of the same variable. Not while a fetch is under way.
  void SetTarget(size_t target, MutableTensorView value,
                 std::optional<std::span<const int64_t>> rows = {});

  // Fetches all targets in their order at `version`, waiting until it exists. `done` gets the
  // version that all of them have: the one asked for, or a newer one where that is kept no longer
  // (then every target has that one). With `newest`, nothing is waited for, and `done` gets the
  // lowest version of any target, or `version` where nothing was to be fetched.
  void Fetch(GlobalStep version, Done<GlobalStep> done, PullAhead ahead = PullAhead::kWindow);

  // After a fetch, until the next one: where the value of a target is. In the ps's memory it is
  // that of its version until the ps makes one that is two above.
  const void* Value(size_t target) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
