#include "ps/shard/refused_pushes.h"

namespace lockstep::ps {
namespace {

// A worker waits 20 ms before the first, and twice as long before each further one, unless another
// message of its push is answered meanwhile.
constexpr int kTries = 4;
// As long as these pauses take together. It is longer than a pause of a busy machine.
constexpr absl::Duration kLeastTime = absl::Milliseconds(300);

// Of a gradient that is not too slow, this part comes meanwhile.
constexpr uint64_t kPart = 16;

}  // namespace

const PartialGradient* RefusedPushes::OnRefused(const PushKey& key, GlobalStep local_step,
                                                size_t variable, uint64_t offset,
                                                absl::Span<const PartialGradient* const> partial,
                                                absl::Duration now) {
  if (WasGivenUp(key.pusher(), variable, local_step)) return nullptr;
  Waiting& waiting = waiting_[key.pusher()];
  const bool is_known = waiting.key == key && waiting.variable == variable;
  // A push has several messages under way: only the same one again is another try.
  if (is_known && (waiting.offset != offset || ++waiting.tries < kTries ||
                   now - waiting.since < kLeastTime)) {
    return nullptr;
  }
  const PartialGradient* slowest = nullptr;
  for (const PartialGradient* const gradient : partial) {
    const Pusher pusher = gradient->key.pusher();
    if (!is_known || gradient->writers > 0) continue;
    if (WasGivenUp(pusher, variable, gradient->local_step)) continue;
    const auto before = waiting.received.find(pusher);
    if (before == waiting.received.end() || gradient->received < before->second) continue;
    if (gradient->received - before->second > gradient->num_bytes / kPart) continue;
    if (slowest == nullptr || gradient->received < slowest->received) slowest = gradient;
  }
  waiting = {.key = key, .variable = variable, .offset = offset, .since = now};
  for (const PartialGradient* const gradient : partial) {
    waiting.received[gradient->key.pusher()] = gradient->received;
  }
  if (slowest != nullptr) {
    given_up_[{slowest->key.pusher(), variable}] = slowest->local_step;
  }
  return slowest;
}

bool RefusedPushes::WasGivenUp(const Pusher& pusher, size_t variable, GlobalStep step) const {
  const auto found = given_up_.find({pusher, variable});
  return found != given_up_.end() && found->second == step;
}

}  // namespace lockstep::ps
