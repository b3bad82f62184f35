#include "ps/copy/copy_sender.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/transport/ps_methods.h"

namespace lockstep::ps {
namespace {

// Each message has a cost of its own at both ends. Over a slow link the answers to larger ones
// would come late.
constexpr uint64_t kMessageBytes = uint64_t{4} << 20;

// Of all that is under way, so that answers come early enough to tell a slow copy from a silent
// one.
constexpr uint64_t kMostBytes = uint64_t{8} << 20;

// A server closes a connection with 64 calls whose messages have not come whole.
constexpr size_t kMostCalls = 16;

// The copy reads them in place.
constexpr uint64_t kWholeTensors = uint64_t{1} << 62;

lockstep::WorkerIdentity ToProto(const WorkerIdentity& identity) {
  lockstep::WorkerIdentity to;
  to.set_job(identity.job);
  to.set_epoch(identity.epoch.value());
  to.set_worker(identity.worker.value());
  to.set_incarnation(identity.incarnation.value());
  return to;
}

}  // namespace

CopySender::CopySender(const CopyTargetOptions& options, MeanMemory memory,
                       std::unique_ptr<TensorTransport> transport, std::unique_ptr<Timer> timer,
                       const Clock* clock, const StateLimits& limits)
    : primary_(ToProto(options.identity)),
      refused_(options.refused),
      lost_(options.lost),
      clock_(clock),
      is_ready_(!options.is_new),
      memory_(std::move(memory)),
      has_begun_(!options.is_new),
      retry_(CallKind::kPlain, kCopyRetry),
      timer_(std::move(timer)),
      transport_(std::move(transport)) {
  if (!options.is_new) return;
  state_ = std::make_unique<StateSender>(
      StateSender::Options{.transport = transport_.get(),
                           .timer = timer_.get(),
                           .clock = clock_,
                           .gate = &gate_,
                           .limits = limits,
                           .primary = primary_,
                           .begun = [this] { OnBegun(); },
                           .refused = [this](const absl::Status& status) { Refuse(status); }});
}

void CopySender::Hold() {
  absl::MutexLock lock(&mutex_);
  has_begun_ = false;
  begins_when_ready_ = true;
}

void CopySender::SetReady() {
  is_ready_.store(true);
  {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(begins_when_ready_, false)) return;
  }
  OnBegun();
}

MutableTensorView CopySender::MeanOf(VariableId variable, DType dtype, const Shape& shape) {
  absl::MutexLock lock(&mutex_);
  return memory_.MeanOf(variable, dtype, shape);
}

void CopySender::Send(StepMeans means, StatusCallback taken) {
  const auto group = std::make_shared<Group>(std::move(means), std::move(taken));
  std::optional<absl::Status> end;
  bool is_due = false;
  {
    absl::MutexLock lock(&mutex_);
    is_due = has_begun_;
    end = end_;
    if (!end.has_value()) {
      if (std::exchange(step_, group->means.step) != group->means.step) push_seq_ = NextPush();
      group->push_seq = push_seq_;
      if (waiting_.empty()) last_answer_ = clock_->Monotonic();
      waiting_.push_back(group);
    }
  }
  if (end.has_value()) return group->taken(*end);
  if (is_due) SendDue(group);
}

// A late message of a sender before, of an earlier step, has a lower number.
PushSeq CopySender::NextPush() const {
  return push_seq_ == PushSeq() ? PushSeq(static_cast<uint64_t>(step_.value()) + 1)
                                : push_seq_.next();
}

void CopySender::BeginState(StateBegin begin) {
  LOCKSTEP_CHECK(state_ != nullptr);
  state_->Begin(std::move(begin));
}

void CopySender::OnBegun() {
  std::vector<std::shared_ptr<Group>> waiting;
  {
    absl::MutexLock lock(&mutex_);
    has_begun_ = true;
    last_answer_ = clock_->Monotonic();
    waiting = waiting_;
  }
  for (const auto& group : waiting) SendDue(group);
}

bool CopySender::LacksState() const { return state_ != nullptr && state_->LacksState(); }

void CopySender::SendState(GlobalStep step, std::vector<std::span<const std::byte>> tensors,
                           StatusCallback taken) {
  LOCKSTEP_CHECK(state_ != nullptr);
  state_->Send(step, tensors, std::move(taken));
}

// Without shared memory the means travel as bytes, and those calls tell what is wrong.
void CopySender::SendDue(const std::shared_ptr<Group>& group) {
  transport_->Open(primary_, [this, group](const absl::StatusOr<TransportInfo>&) {
    const Gate::Pass inside = gate_.Enter();
    if (inside) QueueMessages(group);
  });
}

void CopySender::CutMessages(Group* group) const {
  // Of one group, all are dense or none.
  const bool by_reference =
      std::ranges::all_of(group->means.gradients, [this](const MeanGradient& mean) {
        return mean.rows == nullptr && transport_->SendsByReference(mean.values.bytes());
      });
  group->is_repeated = !group->messages.empty();
  if (group->is_repeated && by_reference == group->by_reference) return;
  group->by_reference = by_reference;
  group->messages = CutIntoMessages(group->means, primary_, group->push_seq,
                                    by_reference ? kWholeTensors : kMessageBytes);
  group->states.assign(group->messages.size(), State::kDue);
  for (MeanMessage& message : group->messages) {
    for (OutgoingTensor& tensor : message.tensors) tensor.by_reference = by_reference;
  }
}

void CopySender::QueueMessages(const std::shared_ptr<Group>& group) {
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value() || !group->taken) return;
    CutMessages(group.get());
    const bool asks = std::exchange(group->asks, false);
    for (size_t i = 0; i < group->messages.size(); ++i) {
      if (group->states[i] != State::kDue) continue;
      group->states[i] = State::kInFlight;
      ++group->in_flight;
      const bool brings_bytes = !asks && !group->by_reference;
      queue_.push_back({group, i, asks, brings_bytes ? group->messages[i].num_bytes : 0});
    }
  }
  SendQueued();
}

void CopySender::SendQueued() {
  std::vector<QueuedMessage> due;
  {
    absl::MutexLock lock(&mutex_);
    while (num_calls_ < kMostCalls && !queue_.empty() &&
           bytes_under_way_ + queue_.front().num_bytes <= kMostBytes) {
      ++num_calls_;
      bytes_under_way_ += queue_.front().num_bytes;
      due.push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  for (const QueuedMessage& queued : due) {
    const MeanMessage& message = queued.group->messages[queued.message];
    auto header = ToArena<PushRequest>(message.header);
    header->set_ask(queued.asks);
    transport_->Call(kPush, std::move(header),
                     queued.asks ? std::vector<OutgoingTensor>() : message.tensors,
                     /*accepts_references=*/false, [this, queued](const auto& reply) {
                       const Gate::Pass inside = gate_.Enter();
                       if (!inside) return;
                       OnReply(queued, reply);
                       SendQueued();
                     });
  }
}

void CopySender::OnReply(const QueuedMessage& sent,
                         const absl::StatusOr<TensorReply<PushReply>>& reply) {
  const std::shared_ptr<Group>& group = sent.group;
  StatusCallback taken;
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    --num_calls_;
    bytes_under_way_ -= sent.num_bytes;
    --group->in_flight;
    if (end_.has_value() || !group->taken) return;
    const absl::Duration now = clock_->Monotonic();
    group->states[sent.message] = State::kDue;
    if (reply.ok()) {
      last_answer_ = now;
      retry_.OnSuccess();
      group->states[sent.message] = State::kAcknowledged;
      refused = RecordOutcomes(*reply->header, group.get());
    } else if (!retry_.OnFailure(FailureOfCopy(reply.status()), now).has_value() &&
               !(group->by_reference && absl::IsNotFound(reply.status()))) {
      // NOT_FOUND: the copy no longer has the memory, which is shared anew.
      refused = reply.status();
    }
    if (refused.ok()) {
      if (group->in_flight > 0) return;
      if (!group->CompleteOrMarkDue()) return SendLater(group);
      taken = std::exchange(group->taken, nullptr);
      std::erase(waiting_, group);
    }
  }
  taken ? taken(absl::OkStatus()) : Refuse(refused);
}

absl::Status CopySender::RecordOutcomes(const PushReply& reply, Group* group) {
  const GlobalStep step = group->means.step;
  for (const PushReply::Outcome& outcome : reply.outcomes()) {
    if (outcome.verdict() == ACCEPTED) group->accepted.insert(outcome.variable());
    if (outcome.verdict() != STALE) continue;
    return absl::AbortedError(absl::StrCat("the copy is at step ", reply.shard_step(),
                                           ", without the mean of variable ", outcome.variable(),
                                           " of step ", step.value()));
  }
  // What comes before that waits there for its turn.
  group->has_reached |= group->IsReachedBy(GlobalStep(reply.shard_step()));
  return absl::OkStatus();
}

bool CopySender::Group::CompleteOrMarkDue() {
  if (std::ranges::find(states, State::kDue) != states.end()) return false;
  if (accepted.size() == means.gradients.size()) {
    if (has_reached) return true;
    asks = true;
    states.front() = State::kDue;
    return false;
  }
  // The copy was started again or has dropped what had come: all of those once more.
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const lockstep::PushPiece& piece : messages[i].header.pieces()) {
      if (!accepted.contains(piece.variable())) states[i] = State::kDue;
    }
  }
  return false;
}

void CopySender::SendLater(const std::shared_ptr<Group>& group) {
  const absl::Duration now = clock_->Monotonic();
  if (retry_.not_before() < now) retry_.OnRefusal(now);
  timer_->After(retry_.not_before() - now, [this, group] {
    const Gate::Pass inside = gate_.Enter();
    if (inside) SendDue(group);
  });
}

// A copy that lacks state cannot have taken the place of this shard.
void CopySender::Refuse(const absl::Status& status) {
  if (state_ != nullptr && !state_->MayBeComplete()) {
    lost_(status);
    return End(absl::OkStatus());
  }
  End(status);
  refused_(status);
}

void CopySender::End(const absl::Status& end) {
  std::vector<std::shared_ptr<Group>> waiting;
  std::vector<StatusCallback> callbacks;
  absl::Status told;
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = end;
    told = *end_;
    queue_.clear();
    waiting.swap(waiting_);
    for (const auto& group : waiting) callbacks.push_back(std::exchange(group->taken, nullptr));
  }
  for (StatusCallback& taken : callbacks) taken(told);
  if (state_ != nullptr) state_->End(told);
  transport_->Cancel();
}

absl::Duration CopySender::Silence() const {
  const absl::Duration of_state = state_ == nullptr ? absl::ZeroDuration() : state_->Silence();
  absl::MutexLock lock(&mutex_);
  // Before the copy has begun it owes no means.
  if (waiting_.empty() || !has_begun_) return of_state;
  return std::max(of_state, clock_->Monotonic() - last_answer_);
}

void CopySender::Close() {
  End(absl::CancelledError("the ps ends"));
  if (state_ != nullptr) state_->AwaitIdle();
  gate_.Close();
}

}  // namespace lockstep::ps
