#include "tests/sim/sim_copy_targets.h"

#include <utility>

#include "tests/sim/planted_copy_bug.h"
#include "tests/sim/remote_ps.h"

namespace lockstep::sim {
namespace {

// A part is less than a variable, a message less than a part.
constexpr ps::StateLimits kSmall{.least_part_bytes = 8, .message_bytes = 4};

// Callbacks that are not due when it is destroyed are not called.
class SenderTimer final : public Timer {
 public:
  SenderTimer(const Node& node, EventQueue* events) : timer_(node, events) {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    timer_.After(delay, [alive = std::weak_ptr(alive_), callback = std::move(callback)]() mutable {
      if (!alive.expired()) callback();
    });
  }

 private:
  NodeTimer timer_;
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace

std::shared_ptr<ps::CopyTarget> SimCopyTargets::Make(const ps::CopyTargetOptions& options) {
  const ListeningPs& copy = book_->Find(options.address);
  senders_.push_back(std::make_shared<ps::CopySender>(
      options, ps::MeanMemory(nullptr), MakeRemoteData(copy.data, {node_, copy.node}, network_),
      std::make_unique<SenderTimer>(node_, events_), clock_, kSmall));
  if (options.is_new) senders_.back()->SetReady();
  return MakeFaultyTarget(senders_.back(), planted_);
}

void SimCopyTargets::Close() {
  for (const auto& sender : senders_) sender->Close();
}

}  // namespace lockstep::sim
