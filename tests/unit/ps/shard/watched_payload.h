// Tells a test when the shard lets a message go, which it does without its lock.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "tests/support/payload_of.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {

// The order of a message whose payload the shard may keep beyond it. `released` is called when the
// last reference to the payload is gone.
inline PushArguments Watched(Message message, std::function<void()> released) {
  const auto payload = lockstep::test::PayloadOf(message.payload(), 50'021);
  PushArguments arguments = message.arguments();
  arguments.tensors = ReceivedTensors(std::shared_ptr<const ReceivedTensors::Segments>(
      payload.get(), [payload, released = std::move(released)](const auto*) { released(); }));
  return arguments;
}

}  // namespace lockstep::ps::test
