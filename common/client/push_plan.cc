#include "common/client/push_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

// Of a gradient that the ps acknowledges and loses.
constexpr int kMaxRepeats = 5;

}  // namespace

PushPlan::PushPlan(const SessionOptions& options, GlobalStep local_step, int num_variables)
    : options_(options),
      local_step_(local_step),
      num_variables_(num_variables),
      retry_(CallKind::kPlain, {.patience = options.patience}) {
  variables_.reserve(num_variables_);
}

void PushPlan::Restart(GlobalStep local_step, int num_variables) {
  LOCKSTEP_CHECK(in_flight_ == 0);
  local_step_ = local_step;
  num_variables_ = num_variables;
  retry_ = RetryPolicy(CallKind::kPlain, {.patience = options_.patience});
  variables_.clear();
  variables_.reserve(num_variables_);
  // Backwards, since the first message takes the last: it is as large as it was.
  for (auto message = messages_.rbegin(); message != messages_.rend(); ++message) {
    message->pieces.clear();
    spare_pieces_.push_back(std::move(message->pieces));
  }
  messages_.clear();
  bucket_.reset();
  bucket_size_ = 0;
  unsent_.reset();
  unsent_size_ = unsent_index_bytes_ = 0;
  first_open_ = 0;
  straggling_ = false;
  repeats_ = 0;
  summary_ = {};
  fatal_ = absl::OkStatus();
}

PushPlan::Message& PushPlan::AddMessage(State state, bool by_reference) {
  Message& message = messages_.emplace_back();
  message.state = state;
  message.by_reference = by_reference;
  if (!spare_pieces_.empty()) {
    message.pieces = std::move(spare_pieces_.back());
    spare_pieces_.pop_back();
  }
  return message;
}

void PushPlan::Add(Variable gradient) {
  LOCKSTEP_CHECK(!AllAdded());
  const size_t index = variables_.size();
  const bool fits = gradient.index_bytes() <= options_.index_bytes;
  variables_.push_back({.of = std::move(gradient)});
  if (variables_[index].of.by_reference && fits) {
    AddReference(index);
  } else {
    Cut(index);
  }
  if (!AllAdded()) return;
  CloseBucket();
  if (unsent_.has_value()) messages_[*unsent_].state = State::kReady;
}

void PushPlan::AddReference(size_t variable) {
  const uint64_t index_bytes = variables_[variable].of.index_bytes();
  if (unsent_.has_value() && (unsent_index_bytes_ + index_bytes > options_.index_bytes ||
                              messages_[*unsent_].pieces.size() >= options_.most_references)) {
    messages_[*unsent_].state = State::kReady;
    unsent_.reset();
  }
  if (!unsent_.has_value()) {
    unsent_ = messages_.size();
    unsent_size_ = 0;
    unsent_index_bytes_ = 0;
    AddMessage(State::kOpen, /*by_reference=*/true)
        .pieces.reserve(std::min(num_variables_ - variable, options_.most_references));
  }
  Message& message = messages_[*unsent_];
  const uint64_t size = variables_[variable].of.num_bytes();
  message.pieces.push_back({variable, 0, size});
  unsent_size_ += size;
  unsent_index_bytes_ += index_bytes;
  if (unsent_size_ > options_.bucket_bytes) message.state = State::kReady;
}

void PushPlan::Cut(size_t variable) {
  const Variable& gradient = variables_[variable].of;
  const uint64_t size = gradient.num_bytes();
  if (size <= options_.bucket_bytes) return AddToBucket(variable, size);
  // No chunk of a sparse gradient cuts an index, and none an element that is made for it.
  const uint64_t whole = gradient.is_sparse                 ? sizeof(int64_t)
                         : gradient.narrow_type.has_value() ? SizeOf(gradient.type())
                                                            : 1;
  const uint64_t chunk = std::max<uint64_t>(1, options_.push_chunk_bytes / whole) * whole;
  for (uint64_t offset = 0; offset < size; offset += chunk) {
    AddMessage(State::kReady)
        .pieces.push_back({variable, offset, std::min<uint64_t>(chunk, size - offset)});
  }
}

void PushPlan::SendBytesOf(size_t message) {
  messages_[message].state = State::kAcknowledged;
  // Also what is judged: a further ps may have to judge it anew (Repeat).
  for (const Piece& piece : std::exchange(messages_[message].pieces, {})) Cut(piece.variable);
  if (AllAdded()) CloseBucket();
}

void PushPlan::AddToBucket(size_t variable, uint64_t size) {
  if (bucket_ && bucket_size_ + size > options_.push_chunk_bytes) CloseBucket();
  if (!bucket_) {
    bucket_ = messages_.size();
    bucket_size_ = 0;
    AddMessage(State::kOpen);
  }
  messages_[*bucket_].pieces.push_back({variable, 0, size});
  bucket_size_ += size;
}

void PushPlan::CloseBucket() {
  if (bucket_) messages_[*bucket_].state = State::kReady;
  bucket_.reset();
}

bool PushPlan::HasPending(const Message& message) const {
  return std::any_of(message.pieces.begin(), message.pieces.end(), [this](const Piece& piece) {
    return variables_[piece.variable].verdict == PENDING;
  });
}

PushPlan::Message* PushPlan::Choose() {
  for (size_t i = first_open_; i < messages_.size(); ++i) {
    Message& message = messages_[i];
    if (message.state == State::kReady && !HasPending(message))
      message.state = State::kAcknowledged;  // judged already: the rest of it is not wanted
    if (message.state == State::kAcknowledged && i == first_open_) ++first_open_;
    if (message.state == State::kReady) return &message;
  }
  return nullptr;
}

std::optional<PushPlan::Outgoing> PushPlan::Next(absl::Duration now) {
  if (!fatal_.ok() || in_flight_ >= options_.window || now < retry_.not_before())
    return std::nullopt;
  Message* message = Choose();
  if (message == nullptr) return std::nullopt;
  if (straggling_ && !message->asked) message->ask = true;
  message->state = State::kInFlight;
  ++in_flight_;
  const auto index = static_cast<size_t>(message - messages_.data());
  if (index == unsent_) unsent_.reset();
  return Outgoing{.message = index,
                  .ask = message->ask,
                  .by_reference = message->by_reference,
                  .pieces = message->pieces};
}

void PushPlan::OnReply(size_t index, const PushReply& reply, absl::Duration now) {
  Message& message = messages_[index];
  --in_flight_;
  message.state = State::kReady;
  if (reply.outcomes_size() != static_cast<int>(message.pieces.size())) {
    fatal_.Update(absl::InternalError(absl::StrCat("push of ", message.pieces.size(),
                                                   " pieces was answered with ",
                                                   reply.outcomes_size(), " outcomes")));
    return;
  }
  retry_.OnSuccess();
  summary_.done = summary_.done || reply.done();
  const bool is_over =
      options_.asynchronous ? summary_.done : GlobalStep(reply.shard_step()) > local_step_;
  straggling_ = straggling_ || is_over;
  if (!RecordOutcomes(message, reply)) return;
  if (message.ask) {
    message.ask = false;
    message.asked = true;
  } else {
    message.state = State::kAcknowledged;
  }
  RepeatLost(now);
}

bool PushPlan::RecordOutcomes(const Message& message, const PushReply& reply) {
  for (size_t i = 0; i < message.pieces.size(); ++i) {
    Progress& variable = variables_[message.pieces[i].variable];
    if (variable.verdict != PENDING) continue;
    const Verdict verdict = reply.outcomes(static_cast<int>(i)).verdict();
    if (!Verdict_IsValid(verdict)) {
      fatal_.Update(absl::InternalError(absl::StrCat("variable ", variable.of.id.value(),
                                                     ": verdict ", static_cast<int>(verdict),
                                                     ", expected PENDING, ACCEPTED or STALE")));
      return false;
    }
    variable.verdict = verdict;
    if (verdict == ACCEPTED) ++summary_.accepted;
    if (verdict == STALE) ++summary_.stale;
  }
  return true;
}

void PushPlan::RepeatLost(absl::Duration now) {
  if (!AllAdded() || in_flight_ > 0 || Choose() != nullptr) return;
  bool lost = false;
  for (Message& message : messages_) {
    if (!HasPending(message)) continue;
    message.state = State::kReady;
    message.ask = true;
    message.asked = false;
    lost = true;
  }
  if (!lost) return;
  if (++repeats_ > kMaxRepeats) {
    fatal_.Update(absl::InternalError(absl::StrCat("push of step ", local_step_.value(),
                                                   ": everything was acknowledged ", repeats_,
                                                   " times, and still there is no verdict")));
    return;
  }
  first_open_ = 0;
  retry_.OnRefusal(now);
}

void PushPlan::OnError(size_t index, const absl::Status& error, absl::Duration now) {
  Message& message = messages_[index];
  --in_flight_;
  message.state = State::kReady;
  if (absl::IsNotFound(error) && message.by_reference) return SendBytesOf(index);
  if (!retry_.OnFailure(error, now).has_value()) {
    fatal_.Update(retry_.GivenUp(error));
  } else if (!absl::IsResourceExhausted(error)) {
    // Its outcome is unknown.
    message.ask = true;
    message.asked = false;
  }
}

void PushPlan::Repeat() {
  for (Progress& variable : variables_) variable.verdict = PENDING;
  for (Message& message : messages_) {
    message.ask = message.asked = false;
    if (message.state == State::kAcknowledged) message.state = State::kReady;
  }
  summary_.accepted = summary_.stale = 0;
  straggling_ = false;
  first_open_ = 0;
  repeats_ = 0;
}

std::optional<absl::Duration> PushPlan::WakeAt() const {
  if (!fatal_.ok() || in_flight_ >= options_.window) return std::nullopt;
  for (size_t i = first_open_; i < messages_.size(); ++i)
    if (messages_[i].state == State::kReady) return retry_.not_before();
  return std::nullopt;
}

std::optional<absl::StatusOr<PushSummary>> PushPlan::Result() const {
  if (in_flight_ > 0 || !AllAdded()) return std::nullopt;
  if (!fatal_.ok()) return fatal_;
  if (summary_.accepted + summary_.stale < num_variables_) return std::nullopt;
  return summary_;
}

}  // namespace lockstep
