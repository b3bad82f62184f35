#include "worker/peer/vector_reduction.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

VectorReduction::VectorReduction(int index, int num_vectors, const CollectiveCall& call,
                                 LocalParticipants participants, VectorOwner* owner)
    : index_(index),
      num_vectors_(num_vectors),
      call_(call),
      owner_(owner),
      participants_(std::move(participants)),
      held_(participants_.num_slots()),
      early_(participants_.num_slots()),
      streams_(participants_.num_local() * participants_.num_participants()) {}

void VectorReduction::Start(int64_t reduction, int64_t step, absl::Span<const void* const> first) {
  first_.assign(first.begin(), first.end());
  Post({.kind = Event::Kind::kStart, .incoming = {.reduction = reduction, .step = step}});
}

void VectorReduction::OnMessage(Incoming incoming) {
  Post({.kind = Event::Kind::kMessage, .incoming = std::move(incoming)});
}

void VectorReduction::OnAnswered(const MessageId& message) {
  Post({.kind = Event::Kind::kAnswered, .incoming = {.message = message}});
}

void VectorReduction::Stop(const absl::Status& failure) {
  {
    absl::MutexLock lock(&mutex_);
    if (stop_.ok()) stop_ = failure;
  }
  Post({.kind = Event::Kind::kStop});
}

CollectiveCall VectorReduction::CallOf(int64_t reduction) const {
  CollectiveCall call = call_;
  call.key.instance = reduction * num_vectors_ + index_;
  return call;
}

void VectorReduction::Post(Event event) {
  {
    absl::MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    if (is_draining_) return;
    is_draining_ = true;
  }
  owner_->Enter();
  Drain();
  owner_->Leave();
}

void VectorReduction::Drain() {
  for (;;) {
    batch_.clear();
    {
      absl::MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = stop_;
      if (events_.empty()) {
        is_draining_ = false;
        return;
      }
      batch_.swap(events_);
    }
    for (Event& event : batch_) Apply(&event);
    if (!failure_.ok()) {
      RefuseAll();
      continue;
    }
    if (is_open_) Advance();
  }
}

void VectorReduction::Apply(Event* event) {
  Incoming& incoming = event->incoming;
  switch (event->kind) {
    case Event::Kind::kStart:
      return Begin(incoming);
    case Event::Kind::kMessage:
      return Accept(std::move(incoming));
    case Event::Kind::kAnswered: {
      Stream& stream = StreamOf(incoming.message);
      --stream.unanswered;
      participants_.OnSent(incoming.message);
      return SendWhatFits(&stream);
    }
    case Event::Kind::kStop:
      return;
  }
}

void VectorReduction::Begin(const Incoming& numbers) {
  if (!failure_.ok()) return;
  LOCKSTEP_CHECK(!is_open_ && numbers.reduction == reduction_ + 1);
  reduction_ = numbers.reduction;
  step_ = numbers.step;
  is_open_ = true;
  participants_.Restart(first_);
  for (Incoming& early : early_) {
    if (early.call != nullptr) Accept(std::exchange(early, {}));
  }
}

void VectorReduction::Accept(Incoming incoming) {
  if (!failure_.ok()) return incoming.call->Respond(EndOfCollective(failure_));
  const absl::Status status = Check(incoming);
  if (!status.ok()) {
    incoming.call->Respond(status);
    return owner_->Fail(status);
  }
  // Repeated: its first answer was lost.
  if (incoming.reduction < reduction_) return incoming.call->RespondWith(SendReply());
  const bool is_early = incoming.reduction > reduction_;
  const size_t slot = participants_.SlotOf(incoming.message);
  Incoming& held = (is_early ? early_ : held_)[slot];
  if (held.call != nullptr) {
    std::swap(held.call, incoming.call);
    return incoming.call->Respond(absl::UnavailableError("the same message has come again"));
  }
  if (!is_early && participants_.HasReceived(incoming.message)) {
    return incoming.call->RespondWith(SendReply());
  }
  held = std::move(incoming);
  if (!is_early) participants_.Receive(held.message, held.elements);
}

absl::Status VectorReduction::Check(const Incoming& incoming) const {
  const std::string& peer = owner_->NameOf(incoming.position);
  const bool is_near = incoming.reduction >= 0 && incoming.reduction <= reduction_ + 1;
  const int64_t expected = is_near ? incoming.reduction : std::max<int64_t>(reduction_, 0);
  LOCKSTEP_RETURN_IF_ERROR(CheckSameCall(CallOf(expected), incoming.said, peer));
  uint64_t bytes = 0;
  for (const std::span<const std::byte>& piece : incoming.elements) bytes += piece.size();
  const absl::Status fits = participants_.Check(incoming.message, bytes);
  if (!fits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("collective: ", ToString(incoming.said), ": ", fits.message(), ", from ", peer,
                     ". Remedy: start every worker with the same model and job"));
  }
  if (incoming.reduction != reduction_ || incoming.step == step_) return absl::OkStatus();
  // One has begun a step in this group that the other had closed in the one before.
  return absl::AbortedError(absl::StrCat("collective: ", ToString(incoming.said),
                                         ": expected step ", step_, ", got ", incoming.step,
                                         " from ", peer));
}

void VectorReduction::Advance() {
  sends_.clear();
  consumed_.clear();
  participants_.Advance(&sends_, &consumed_);
  for (const MessageId& message : consumed_) {
    Incoming& held = held_[participants_.SlotOf(message)];
    held.call->RespondWith(SendReply());
    held = {};
  }
  for (const LocalParticipants::Send& send : sends_) {
    Stream& stream = StreamOf(send.message);
    stream.waiting.push_back(send);
    SendWhatFits(&stream);
  }
  if (!participants_.is_done()) return;
  is_open_ = false;
  owner_->OnVectorDone();
}

void VectorReduction::SendWhatFits(Stream* stream) {
  while (stream->next < stream->waiting.size() && stream->unanswered < kWindow) {
    ++stream->unanswered;
    owner_->Send(index_, reduction_, step_, stream->waiting[stream->next++]);
  }
  if (stream->next < stream->waiting.size()) return;
  stream->waiting.clear();
  stream->next = 0;
}

void VectorReduction::RefuseAll() {
  for (std::vector<Incoming>* const calls : {&held_, &early_}) {
    for (Incoming& incoming : *calls) {
      if (incoming.call != nullptr) incoming.call->Respond(EndOfCollective(failure_));
      incoming = {};
    }
  }
  for (Stream& stream : streams_) stream = {};
}

VectorReduction::Stream& VectorReduction::StreamOf(const MessageId& message) {
  const int local = message.from - participants_.first_rank();
  return streams_[local * participants_.num_participants() + message.to];
}

}  // namespace lockstep::worker
