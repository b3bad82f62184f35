#include "tests/unit/worker/tower/orders_of_work.h"

#include <optional>

namespace lockstep::worker {
namespace {

constexpr uint64_t kMostTries = 250;

bool HasWantedBits(const DeferredGroup& deferred, const std::vector<Gradients>& wanted,
                   uint64_t seed, std::optional<int64_t> omitted_wait) {
  const int variant = static_cast<int>(seed % kVariants);
  deferred.work->Reseed(seed);
  if (omitted_wait.has_value()) deferred.work->OmitWait(*omitted_wait);
  return AreSame(*Train(deferred.group, *deferred.graph, deferred.towers, variant, nullptr,
                        deferred.make_gradient),
                 wanted[static_cast<size_t>(variant)]);
}

}  // namespace

uint64_t FirstOtherOrder(const DeferredGroup& deferred, const std::vector<Gradients>& wanted,
                         uint64_t seeds) {
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    if (!HasWantedBits(deferred, wanted, seed, std::nullopt)) return seed;
  }
  return 0;
}

std::vector<int64_t> NeedlessWaits(const DeferredGroup& deferred,
                                   const std::vector<Gradients>& wanted, int64_t* waits) {
  const int64_t before = deferred.work->waits();
  (void)*Train(deferred.group, *deferred.graph, deferred.towers, 0, nullptr,
               deferred.make_gradient);
  *waits = deferred.work->waits() - before;
  std::vector<int64_t> needless;
  for (int64_t index = 0; index < *waits; ++index) {
    bool shows = false;
    for (uint64_t seed = 1; seed <= kMostTries && !shows; ++seed) {
      shows = !HasWantedBits(deferred, wanted, seed, index);
    }
    if (!shows) needless.push_back(index);
  }
  return needless;
}

}  // namespace lockstep::worker
