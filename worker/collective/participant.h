// One participant of a reduction: carries out its operations of a schedule over its vector, in
// place. It is a state machine without thread, socket or clock. Whoever drives it moves messages:
//
//   for (;;) {
//     const Participant::Action action = participant.Next();
//     if kSend:         send action.elements to action.peer as message action.message;
//                       OnSent() when the memory need not be read any more
//     if kReceive:      get all of action.messages; OnReceived() with their elements
//     if kWaitForSends: wait until one more OnSent()
//     if kDone:         break
//   }
//
// A socket gives elements as they arrive, in any number of parts; its OnSent comes when the bytes
// are copied out. Shared memory gives pointers into the peer's vector, nothing is copied, and the
// receiver tells the sender to call OnSent. Messages that come before they are asked for are kept
// by the driver. Bits depend on none of this.
//
// Several vectors are reduced at the same time by a Participant each. A message is named by
// (reduction, from, to, number).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// Used by one thread at a time. Calls allocate nothing after the constructor.
class Participant {
 public:
  struct Action {
    enum class Kind { kSend, kReceive, kWaitForSends, kDone };
    Kind kind = Kind::kDone;
    // kSend: where to, which message, and what: elements of the vector, or those that it begins
    // with.
    Term to;
    TensorView elements;
    // kReceive: elements [received, range.count) of these messages are missing. Every one has
    // range.count elements.
    absl::Span<const Term> messages;
    ElementRange range;
    size_t received = 0;
    // The elements are only copied: they may lie at any address.
    bool is_copy = false;
  };

  // `schedule` outlives this. `vector` has its length, a dtype with element math (CHECK), and is
  // the participant's until kDone. A total is divided by `divisor`: 1 for a sum.
  Participant(const Schedule* schedule, int rank, const MutableTensorView& vector, int divisor);

  // Each send is returned once; others until OnReceived or OnSent changes them.
  Action Next();
  // The next `count` elements of each of the messages that Next asked for, in their order: at most
  // those that are missing (CHECK).
  void OnReceived(absl::Span<const void* const> elements, size_t count);
  // The elements of a send are not read any more.
  void OnSent(const Term& to);

  // The vector has its final values. Some may still have to be sent, so that they may be read but
  // not written.
  bool has_result() const { return next_ == operations_.size(); }
  // Whether Restart may be told where the first elements lie.
  bool MayBeginElsewhere() const { return first_reads_.has_value(); }
  // From the start again, for the next step. Next has returned kDone (CHECK). `first`: the elements
  // that the vector begins with; they are only read, until kDone, and lie apart from the vector, or
  // are the vector. Null: they are in the vector.
  void Restart(const MutableTensorView& vector, int divisor, const void* first = nullptr);

 private:
  struct OpenSend {
    Term to;
    ElementRange range;
    bool is_in_vector = true;
  };

  bool IsBeingSent(const ElementRange& range) const;
  // Terms that are messages, in their order.
  void FindMessages(const Operation& operation);
  void AddPart(const Operation& operation, absl::Span<const void* const> elements, size_t count);
  void FinishOperation();
  std::byte* At(size_t element) const;
  bool ReadsFirst() const { return first_ != nullptr && (*first_reads_)[next_]; }
  // Where the operation under way reads own elements.
  const std::byte* OwnAt(size_t element) const;

  const Schedule* const schedule_;
  const int rank_;
  const absl::Span<const Operation> operations_;
  const std::optional<std::vector<bool>> first_reads_;  // by operation
  MutableTensorView vector_;
  int divisor_;
  const std::byte* first_ = nullptr;  // null: in the vector
  size_t next_ = 0;                   // operation
  size_t received_ = 0;               // elements of it
  std::vector<OpenSend> open_;
  std::vector<Term> messages_;
  std::vector<TensorView> terms_;
};

}  // namespace lockstep::worker
