// Pulls that wait for their version.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "ps/shard/catalog.h"
#include "ps/shard/orders.h"
#include "ps/shard/outbox.h"

namespace lockstep::ps {

struct ParkedPull {
  WorkerIdentity worker;
  GlobalStep version;
  std::shared_ptr<const std::vector<ResolvedPiece>> pieces;
  Done<PullResult> done;
  bool in_memory = false;
};

// Not thread-safe.
class ParkedPulls {
 public:
  // The same pull by the same worker, if it waits already, is answered CANCELLED.
  void Park(ParkedPull pull, Outbox* outbox);
  // Answers what can be answered: `answer` returns nullopt for a pull that has to wait on.
  void Retry(absl::FunctionRef<std::optional<PullResult>(const ParkedPull&)> answer,
             Outbox* outbox);
  void FailIf(absl::FunctionRef<bool(const ParkedPull&)> condition, const absl::Status& status,
              Outbox* outbox);
  size_t size() const { return pulls_.size(); }

 private:
  std::vector<ParkedPull> pulls_;
};

}  // namespace lockstep::ps
