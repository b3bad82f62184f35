#include "ps/shard/refused_pushes.h"

#include <algorithm>
#include <utility>

namespace lockstep::ps {
namespace {

// A worker waits 20 ms before the first, and twice as long before each further one, unless another
// message of its push is answered meanwhile.
constexpr int kTries = 4;
// As long as these pauses take together. It is longer than a pause of a busy machine.
constexpr absl::Duration kLeastTime = absl::Milliseconds(300);

// Of a gradient that is not too slow, this part comes meanwhile.
constexpr uint64_t kPart = 16;

using Gradients = std::vector<const PartialGradient*>;
using MakesRoom = absl::FunctionRef<bool(absl::Span<const PartialGradient* const>)>;

// Of `slow`, the least complete first. Empty: all together make too little room.
Gradients ChooseFrom(Gradients slow, MakesRoom makes_room) {
  std::ranges::sort(slow, {}, &PartialGradient::received);
  for (const PartialGradient* const& gradient : slow) {
    if (makes_room(absl::MakeConstSpan(&gradient, 1))) return {gradient};
  }
  for (size_t count = 2; count <= slow.size(); ++count) {
    if (!makes_room(absl::MakeConstSpan(slow).first(count))) continue;
    slow.resize(count);
    return slow;
  }
  return {};
}

}  // namespace

Gradients RefusedPushes::OnRefused(const PushKey& key, GlobalStep local_step, size_t variable,
                                   uint64_t offset,
                                   absl::Span<const PartialGradient* const> partial,
                                   absl::Duration now, MakesRoom makes_room) {
  if (WasGivenUp(key.pusher(), variable, local_step)) return {};
  Waiting& waiting = waiting_[key.pusher()];
  const bool is_known = waiting.key == key && waiting.variable == variable;
  // A push has several messages under way: only the same one again is another try.
  if (is_known &&
      (waiting.offset != offset || ++waiting.tries < kTries || now - waiting.since < kLeastTime)) {
    return {};
  }
  Gradients slow;
  for (const PartialGradient* const gradient : partial) {
    const Pusher pusher = gradient->key.pusher();
    if (!is_known || gradient->writers > 0) continue;
    if (WasGivenUp(pusher, variable, gradient->local_step)) continue;
    const auto before = waiting.received.find(pusher);
    if (before == waiting.received.end() || gradient->received < before->second) continue;
    if (gradient->received - before->second > gradient->num_bytes / kPart) continue;
    slow.push_back(gradient);
  }
  waiting = {.key = key, .variable = variable, .offset = offset, .since = now};
  for (const PartialGradient* const gradient : partial) {
    waiting.received[gradient->key.pusher()] = gradient->received;
  }
  Gradients given_up = ChooseFrom(std::move(slow), makes_room);
  for (const PartialGradient* const gradient : given_up) {
    given_up_[{gradient->key.pusher(), variable}] = gradient->local_step;
  }
  return given_up;
}

bool RefusedPushes::WasGivenUp(const Pusher& pusher, size_t variable, GlobalStep step) const {
  const auto found = given_up_.find({pusher, variable});
  return found != given_up_.end() && found->second == step;
}

}  // namespace lockstep::ps
