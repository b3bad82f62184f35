// Messages that may have thousands of parts: all of one message are in one arena, since to allocate
// and free each of them takes longer than to write and parse it.
#pragma once

#include <google/protobuf/arena.h>

#include <memory>
#include <utility>

namespace lockstep {

// An empty message. The arena lives as long as any pointer to the message, or to a part of it that
// shares its owner.
template <typename Message>
std::shared_ptr<Message> NewArenaMessage() {
  auto arena = std::make_shared<google::protobuf::Arena>();
  auto* const message = google::protobuf::Arena::CreateMessage<Message>(arena.get());
  return std::shared_ptr<Message>(std::move(arena), message);
}

template <typename Message>
std::shared_ptr<Message> ToArena(const Message& message) {
  std::shared_ptr<Message> copy = NewArenaMessage<Message>();
  *copy = message;
  return copy;
}

}  // namespace lockstep
