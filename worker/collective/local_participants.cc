#include "worker/collective/local_participants.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::worker {
namespace {

void CountMessage(const TensorView& elements, Traffic* traffic) {
  ++traffic->messages;
  traffic->elements += elements.num_elements();
}

}  // namespace

LocalParticipants::LocalParticipants(const Schedule* schedule, int first_rank,
                                     absl::Span<const MutableTensorView> vectors, int divisor)
    : schedule_(schedule),
      first_rank_(first_rank),
      divisor_(divisor),
      vectors_(vectors.begin(), vectors.end()),
      size_(SizeOf(vectors[0].dtype)) {
  const int all = schedule->num_participants();
  size_t most_messages = 0;
  participants_.reserve(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    const int rank = first_rank + static_cast<int>(i);
    participants_.emplace_back(schedule, rank, vectors[i], divisor);
    std::vector<std::vector<size_t>> lengths(all);  // by sender and number
    for (const Operation& operation : schedule->operations(rank)) {
      if (operation.kind == Operation::Kind::kSend) continue;
      most_messages = std::max(most_messages, operation.num_terms);
      for (const Term& term : schedule->terms(rank, operation)) {
        if (term.message < 0) continue;
        std::vector<size_t>& own = lengths[term.rank];
        own.resize(std::max(own.size(), static_cast<size_t>(term.message) + 1));
        own[term.message] = operation.range.count;
      }
    }
    for (const std::vector<size_t>& own : lengths) {
      first_slots_.push_back(slots_.size());
      for (const size_t length : own) slots_.push_back({.elements = length});
    }
  }
  first_slots_.push_back(slots_.size());
  terms_.reserve(most_messages);
  cursors_.reserve(most_messages);
  elements_.reserve(most_messages);
  blocks_ = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(most_messages * kBlockBytes)}));
}

bool LocalParticipants::MayBeginElsewhere() const {
  return std::ranges::all_of(participants_, &Participant::MayBeginElsewhere);
}

void LocalParticipants::Restart(absl::Span<const void* const> first) {
  LOCKSTEP_CHECK(first.empty() || first.size() == participants_.size());
  for (size_t i = 0; i < participants_.size(); ++i) {
    participants_[i].Restart(vectors_[i], divisor_, first.empty() ? nullptr : first[i]);
  }
  for (ReceivedMessage& slot : slots_) slot.has_arrived = false;
}

void LocalParticipants::Advance(std::vector<Send>* sends, std::vector<MessageId>* consumed) {
  for (bool advances = true; advances;) {
    advances = false;
    for (size_t i = 0; i < participants_.size(); ++i) {
      while (Step(first_rank_ + static_cast<int>(i), sends, consumed)) advances = true;
    }
  }
}

bool LocalParticipants::is_done() {
  return std::ranges::all_of(participants_, [](Participant& participant) {
    return participant.has_result() && participant.Next().kind == Participant::Action::Kind::kDone;
  });
}

const LocalParticipants::ReceivedMessage* LocalParticipants::Find(const MessageId& message) const {
  const int all = schedule_->num_participants();
  if (!IsLocal(message.to) || message.from < 0 || message.from >= all) return nullptr;
  const size_t stream = static_cast<size_t>(message.to - first_rank_) * all + message.from;
  const size_t count = first_slots_[stream + 1] - first_slots_[stream];
  if (message.number < 0 || static_cast<size_t>(message.number) >= count) return nullptr;
  return &slots_[first_slots_[stream] + message.number];
}

absl::Status LocalParticipants::Check(const MessageId& message, uint64_t bytes) const {
  const ReceivedMessage* const slot = Find(message);
  if (slot == nullptr || IsLocal(message.from)) {
    return absl::InvalidArgumentError(absl::StrCat("participant ", message.to,
                                                   " expects no message ", message.number,
                                                   " from participant ", message.from));
  }
  if (bytes == slot->elements * size_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("message ", message.number, " from participant ",
                                                 message.from, " to ", message.to, ": expected ",
                                                 slot->elements * size_, " bytes, got ", bytes));
}

bool LocalParticipants::HasReceived(const MessageId& message) const {
  return Find(message)->has_arrived;
}

void LocalParticipants::Receive(const MessageId& message, Pieces pieces) {
  ReceivedMessage& slot = At(message);
  LOCKSTEP_CHECK(!slot.has_arrived);
  slot.has_arrived = true;
  slot.pieces = pieces;
}

void LocalParticipants::OnSent(const MessageId& message) {
  participants_[message.from - first_rank_].OnSent({message.to, message.number});
}

bool LocalParticipants::Step(int rank, std::vector<Send>* sends, std::vector<MessageId>* consumed) {
  const Participant::Action action = participants_[rank - first_rank_].Next();
  if (action.kind == Participant::Action::Kind::kReceive) return ReceiveAt(rank, action, consumed);
  if (action.kind != Participant::Action::Kind::kSend) return false;
  SendFrom(rank, action, sends);
  return true;
}

void LocalParticipants::SendFrom(int rank, const Participant::Action& action,
                                 std::vector<Send>* sends) {
  const MessageId message = {rank, action.to.rank, action.to.message};
  if (!IsLocal(message.to)) {
    CountMessage(action.elements, &across_);
    sends->push_back({message, action.elements});
    return;
  }
  CountMessage(action.elements, &within_);
  ReceivedMessage& slot = At(message);
  slot.has_arrived = true;
  slot.elements_at = static_cast<const std::byte*>(action.elements.data);
}

bool LocalParticipants::ReceiveAt(int rank, const Participant::Action& action,
                                  std::vector<MessageId>* consumed) {
  terms_.assign(action.messages.begin(), action.messages.end());
  cursors_.clear();
  for (const Term& term : terms_) {
    const ReceivedMessage* const slot = Find({term.rank, rank, term.message});
    if (!slot->has_arrived) return false;
    cursors_.push_back({slot});
  }
  const size_t alignment = action.is_copy ? 1 : size_;
  for (size_t missing = action.range.count; missing > 0;) {
    const size_t count = PartOf(action, missing);
    elements_.clear();
    for (size_t k = 0; k < cursors_.size(); ++k) {
      auto* const copy = static_cast<std::byte*>(blocks_.data()) + k * kBlockBytes;
      elements_.push_back(Read(&cursors_[k], count * size_, alignment, copy));
    }
    participants_[rank - first_rank_].OnReceived(elements_, count);
    missing -= count;
  }
  for (const Term& term : terms_) {
    const MessageId message = {term.rank, rank, term.message};
    if (IsLocal(term.rank)) {
      OnSent(message);
    } else {
      consumed->push_back(message);
    }
  }
  return true;
}

size_t LocalParticipants::PartOf(const Participant::Action& action, size_t missing) const {
  // Participant adds in blocks, too: one that was copied is still in the nearest cache.
  const size_t block = std::min(kBlockBytes / size_, missing);
  if (cursors_.size() > 1) return block;
  const Cursor& cursor = cursors_[0];
  if (cursor.slot->elements_at != nullptr) return missing;
  const std::span<const std::byte> left = LeftOf(cursor);
  const bool is_usable = action.is_copy || reinterpret_cast<uintptr_t>(left.data()) % size_ == 0;
  const size_t together = left.size() / size_;
  if (!is_usable) return block;
  // An element that is cut goes by itself.
  return together == 0 ? 1 : std::min(together, missing);
}

std::span<const std::byte> LocalParticipants::LeftOf(const Cursor& cursor) {
  return cursor.slot->pieces[cursor.piece].subspan(cursor.offset);
}

const void* LocalParticipants::Read(Cursor* cursor, size_t bytes, size_t alignment,
                                    std::byte* block) const {
  const ReceivedMessage& slot = *cursor->slot;
  if (slot.elements_at != nullptr) {
    cursor->offset += bytes;
    return slot.elements_at + cursor->offset - bytes;
  }
  const std::byte* const begin = LeftOf(*cursor).data();
  const bool is_usable =
      LeftOf(*cursor).size() >= bytes && reinterpret_cast<uintptr_t>(begin) % alignment == 0;
  for (size_t done = 0; done < bytes;) {
    const std::span<const std::byte> left = LeftOf(*cursor);
    const size_t now = std::min(bytes - done, left.size());
    if (!is_usable) std::memcpy(block + done, left.data(), now);
    cursor->offset += now;
    done += now;
    if (now == left.size()) {
      ++cursor->piece;
      cursor->offset = 0;
    }
  }
  return is_usable ? begin : block;
}

}  // namespace lockstep::worker
