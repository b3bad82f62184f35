// QueueEvent is the object to which a completion queue's tag points.
#pragma once

#include <memory>
#include <utility>

namespace lockstep::rpc {

class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  virtual void OnEvent(bool ok) = 0;
};

// An event of `Call`, a member of it. Keeps its call alive from Arm until it has happened.
template <typename Call>
class CallEvent final : public QueueEvent {
 public:
  CallEvent(Call* call, void (Call::*handler)(bool)) : call_(call), handler_(handler) {}

  // Returns the tag for a queue that is certain to return it.
  void* Arm() {
    keep_ = call_->shared_from_this();
    return tag();
  }
  void* tag() { return static_cast<QueueEvent*>(this); }

  void OnEvent(bool ok) override {
    const std::shared_ptr<Call> keep = std::move(keep_);
    (call_->*handler_)(ok);
  }

 private:
  Call* const call_;  // it contains this
  void (Call::*const handler_)(bool);
  std::shared_ptr<Call> keep_;
};

}  // namespace lockstep::rpc
