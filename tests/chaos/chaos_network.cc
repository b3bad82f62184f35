#include "tests/chaos/chaos_network.h"

#include <functional>
#include <utility>

namespace lockstep::test {
namespace {

class DisturbedLinks : public OngoingFault {
 public:
  explicit DisturbedLinks(std::function<void()> restore) : restore_(std::move(restore)) {}
  void Heal() override { restore_(); }

 private:
  const std::function<void()> restore_;
};

}  // namespace

std::unique_ptr<OngoingFault> ChaosNetwork::Inject(const Fault& fault, const FaultTasks& tasks) {
  Disturb(fault, tasks);
  return std::make_unique<DisturbedLinks>([=, this] { Restore(fault, tasks); });
}

}  // namespace lockstep::test
