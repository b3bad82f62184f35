// What a copy learns of the gradients that its primary has counted.
#include <algorithm>

#include "ps/shard/gradient_receiver.h"

namespace lockstep::ps {

void GradientReceiver::AcceptMean(size_t variable, const PushContext& push) {
  const MeanArguments& mean = *push.arguments.mean;
  ledger_.Record(push.key, variable, PushStatus::kAccepted);
  for (const CountedPush& of : mean.mean_of) {
    const PushKey key{of.worker, of.incarnation, of.push_seq};
    // The ledger keeps something for each worker.
    if (of.worker.value() >= variables_.config.total_num_replicas()) continue;
    if (ledger_.OpenCounted(key, push.arguments.local_step).ok()) {
      ledger_.Record(key, variable, PushStatus::kAccepted);
    }
  }
  counts_.accepted += mean.mean_of.size();
  counts_.stale = std::max(counts_.stale, mean.stale);
}

}  // namespace lockstep::ps
