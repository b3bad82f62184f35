// The participants of one process in the reduction of one vector. Messages among them are pointers;
// what goes to or comes from other processes passes through the owner of this. A state machine
// without thread, socket or clock.
//
//   Advance(&sends, &consumed) after the start and after each Receive or OnSent, until is_done().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "worker/collective/participant.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// A message of a schedule, by the ranks of its ends.
struct MessageId {
  int from = 0;
  int to = 0;
  int number = 0;

  friend bool operator==(const MessageId&, const MessageId&) = default;
};

// Used by one thread at a time. Allocates nothing in steady state.
class LocalParticipants {
 public:
  // Bytes cut anywhere, also through elements, at any alignment.
  using Pieces = absl::Span<const std::span<const std::byte>>;

  struct Send {
    MessageId message;
    TensorView elements;
  };

  // Ranks [first_rank, first_rank + vectors.size()) of `schedule`, which outlives this. Each vector
  // is its participant's while a reduction runs, and stays at its place. A total is divided by
  // `divisor`.
  LocalParticipants(const Schedule* schedule, int first_rank,
                    absl::Span<const MutableTensorView> vectors, int divisor);

  // Whether Restart may be told where the first elements lie.
  bool MayBeginElsewhere() const;
  // A new reduction of the vectors. The last one is done (CHECK). `first`: by participant, as
  // Participant::Restart; empty: the elements are in the vectors.
  void Restart(absl::Span<const void* const> first = {});
  // Does what can be done. Appends messages that are to leave, each once, and messages of others
  // whose elements are not read any more.
  void Advance(std::vector<Send>* sends, std::vector<MessageId>* consumed);
  // Whether `message` comes from another process, goes to one of these participants and has so many
  // bytes; otherwise INVALID_ARGUMENT.
  absl::Status Check(const MessageId& message, uint64_t bytes) const;
  // Whether it has been received, consumed or not. For messages that Check accepts.
  bool HasReceived(const MessageId& message) const;
  // Its elements are in `pieces`, which stay until it is consumed. Check accepts it, and it has not
  // been received (CHECK).
  void Receive(const MessageId& message, Pieces pieces);
  // The elements of a send are not read any more.
  void OnSent(const MessageId& message);

  bool is_done();

  // Numbers the messages that Check may accept: below num_slots().
  size_t SlotOf(const MessageId& message) const { return Find(message) - slots_.data(); }
  size_t num_slots() const { return slots_.size(); }
  int first_rank() const { return first_rank_; }
  int num_local() const { return static_cast<int>(participants_.size()); }
  int num_participants() const { return schedule_->num_participants(); }
  // Sent since the construction, to these participants and to others.
  const Traffic& sent_within() const { return within_; }
  const Traffic& sent_across() const { return across_; }

 private:
  static constexpr size_t kBlockBytes = size_t{16} << 10;

  // Where a message arrives.
  struct ReceivedMessage {
    size_t elements = 0;
    bool has_arrived = false;
    Pieces pieces;                           // of another process
    const std::byte* elements_at = nullptr;  // of one of these participants
  };
  // Reads a message in blocks of elements.
  struct Cursor {
    const ReceivedMessage* slot = nullptr;
    size_t piece = 0;
    size_t offset = 0;  // in the piece, or in elements_at
  };

  bool IsLocal(int rank) const {
    return rank >= first_rank_ && rank < first_rank_ + static_cast<int>(participants_.size());
  }
  const ReceivedMessage* Find(const MessageId& message) const;
  ReceivedMessage& At(const MessageId& message) {
    return const_cast<ReceivedMessage&>(*Find(message));
  }
  // Whether there was something to do.
  bool Step(int rank, std::vector<Send>* sends, std::vector<MessageId>* consumed);
  void SendFrom(int rank, const Participant::Action& action, std::vector<Send>* sends);
  bool ReceiveAt(int rank, const Participant::Action& action, std::vector<MessageId>* consumed);
  // How many of `missing` elements the next part has: of one message all that lie together, if they
  // can be used there, otherwise a block.
  size_t PartOf(const Participant::Action& action, size_t missing) const;
  // The next `bytes` of a message: where they lie, if they lie together at a multiple of
  // `alignment`, otherwise a copy in `block`, which has kBlockBytes.
  const void* Read(Cursor* cursor, size_t bytes, size_t alignment, std::byte* block) const;
  // Of the message, from the cursor on; not empty.
  static std::span<const std::byte> LeftOf(const Cursor& cursor);

  const Schedule* const schedule_;
  const int first_rank_;
  const int divisor_;
  const std::vector<MutableTensorView> vectors_;
  const size_t size_;  // of an element
  std::vector<Participant> participants_;
  // By (to, from): first_slots_[(to - first_rank) * participants of all + from], and one more.
  std::vector<size_t> first_slots_;
  std::vector<ReceivedMessage> slots_;
  std::vector<Term> terms_;  // these four: of the receive under way
  std::vector<Cursor> cursors_;
  std::vector<const void*> elements_;
  Tensor blocks_;
  Traffic within_;
  Traffic across_;
};

}  // namespace lockstep::worker
