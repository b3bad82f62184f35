#include "ps/copy/state_sender.h"

#include <algorithm>
#include <utility>

#include "common/transport/ps_methods.h"

namespace lockstep::ps {
namespace {

// While one is copied at the other end, others are on their way.
constexpr size_t kMostInFlight = 4;

}  // namespace

void StateSender::Begin(StateBegin begin) {
  auto message = std::make_shared<Message>();
  *message->header.mutable_worker() = options_.primary;
  message->header.set_step(begin.step.value());
  message->header.set_begins(true);
  message->header.mutable_scalars()->Add(begin.scalars.begin(), begin.scalars.end());
  message->header.set_accepted(begin.accepted);
  message->header.set_stale(begin.stale);
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    tensors_ = std::move(begin.tensors);
    plan_.emplace(tensors_);
    budget_.emplace(plan_->num_bytes(), options_.limits.least_part_bytes);
    last_answer_ = part_began_ = options_.clock->Monotonic();
    due_.push_back(std::move(message));
    taken_ = [this](const absl::Status& status) {
      if (status.ok()) options_.begun();
    };
  }
  SendDue();
}

void StateSender::Send(GlobalStep step, const std::vector<std::span<const std::byte>>& tensors,
                       StatusCallback taken) {
  absl::Status told;
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value() && plan_.has_value() && !is_complete_) {
      taken_ = std::exchange(taken, nullptr);
      step_ = step;
      last_answer_ = part_began_ = options_.clock->Monotonic();
      part_bytes_ = 0;
      for (const auto& ranges : plan_->Next(budget_->next_bytes(), options_.limits.message_bytes)) {
        for (const StateRange& range : ranges) part_bytes_ += range.size;
        due_.push_back(MakeMessage(step, ranges, tensors));
      }
      if (due_.empty()) due_.push_back(MakeLast());
    }
    if (end_.has_value()) told = *end_;
  }
  taken ? taken(told) : SendDue();
}

StateSender::Pending StateSender::MakeMessage(
    GlobalStep step, const std::vector<StateRange>& ranges,
    const std::vector<std::span<const std::byte>>& tensors) const {
  auto message = std::make_shared<Message>();
  *message->header.mutable_worker() = options_.primary;
  message->header.set_step(step.value());
  for (const StateRange& range : ranges) {
    const StateTensor& tensor = tensors_[range.tensor];
    lockstep::StoredPiece* const piece = message->header.add_pieces();
    piece->set_variable(tensor.id.value());
    piece->set_slot(tensor.slot_name);
    piece->set_offset(range.offset);
    piece->set_size(range.size);
    message->tensors.push_back({.values = tensors[range.tensor].subspan(range.offset, range.size)});
  }
  return message;
}

StateSender::Pending StateSender::MakeLast() {
  auto message = std::make_shared<Message>();
  *message->header.mutable_worker() = options_.primary;
  message->header.set_step(step_.value());
  message->header.set_completes(true);
  has_sent_last_ = true;
  return message;
}

void StateSender::SendDue() {
  std::vector<Pending> due;
  {
    absl::MutexLock lock(&mutex_);
    while (in_flight_ < kMostInFlight && !due_.empty()) {
      due.push_back(std::move(due_.front()));
      due_.pop_front();
      ++in_flight_;
    }
  }
  for (const Pending& message : due) {
    options_.transport->Call(
        kPutState, ToArena<PutStateRequest>(message->header), message->tensors,
        /*accepts_references=*/false,
        [this, message](const absl::StatusOr<TensorReply<PutStateReply>>& reply) {
          OnReply(message, reply.status());
        });
  }
}

void StateSender::OnReply(const Pending& message, const absl::Status& status) {
  const Gate::Pass inside = options_.gate->Enter();
  StatusCallback taken;
  absl::Status told;
  bool is_refused = false;
  {
    absl::MutexLock lock(&mutex_);
    --in_flight_;
    const absl::Duration now = options_.clock->Monotonic();
    if (end_.has_value()) {
      told = *end_;
      if (in_flight_ == 0) taken = std::exchange(taken_, nullptr);
    } else if (!status.ok()) {
      due_.push_front(message);
      is_refused = !retry_.OnFailure(FailureOfCopy(status), now).has_value();
    } else {
      last_answer_ = now;
      retry_.OnSuccess();
      if (due_.empty() && in_flight_ == 0) taken = Finish(now);
    }
  }
  if (taken) return taken(told);
  if (is_refused) return options_.refused(status);
  status.ok() ? SendDue() : SendLater();
}

StatusCallback StateSender::Finish(absl::Duration now) {
  if (part_bytes_ > 0) {
    budget_->OnPart(part_began_ - last_end_, part_bytes_, now - part_began_);
    part_bytes_ = 0;
  }
  last_end_ = now;
  is_complete_ = has_sent_last_;
  // The beginning is no part, even where there is nothing to send.
  const bool is_part = step_ != GlobalStep(-1);
  if (is_part && plan_->is_done() && !has_sent_last_) {
    due_.push_back(MakeLast());
    return nullptr;
  }
  return std::exchange(taken_, nullptr);
}

void StateSender::SendLater() {
  absl::Duration pause;
  {
    absl::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    pause = std::max(absl::ZeroDuration(), retry_.not_before() - options_.clock->Monotonic());
  }
  options_.timer->After(pause, [this] {
    const Gate::Pass inside = options_.gate->Enter();
    if (inside) SendDue();
  });
}

bool StateSender::LacksState() const {
  absl::MutexLock lock(&mutex_);
  return !is_complete_ && !end_.has_value();
}

bool StateSender::MayBeComplete() const {
  absl::MutexLock lock(&mutex_);
  return has_sent_last_;
}

absl::Duration StateSender::Silence() const {
  absl::MutexLock lock(&mutex_);
  return taken_ == nullptr ? absl::ZeroDuration() : options_.clock->Monotonic() - last_answer_;
}

void StateSender::End(const absl::Status& end) {
  StatusCallback taken;
  absl::Status told;
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value()) end_ = end;
    told = *end_;
    due_.clear();
    if (in_flight_ == 0) taken = std::exchange(taken_, nullptr);
  }
  if (taken) taken(told);
}

void StateSender::AwaitIdle() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](size_t* in_flight) { return *in_flight == 0; }, &in_flight_));
}

}  // namespace lockstep::ps
