// Decides which message of a gradient goes next: cuts and joins variables into messages, keeps the
// window, remembers verdicts, resolves unknown outcomes. Sends nothing and knows no clock.
//
// A message whose outcome is unknown (the ps was not reachable, or did not answer) is asked about
// before its bytes are sent again; a message that was refused for want of memory is sent again. So
// is everything of a variable that is still pending when all of it was acknowledged: the ps lost
// it. When a reply shows that the shard has closed this step (asynchronous: its last), the rest is
// asked about before it is sent, since it would be dropped.
//
// What the ps sees where it is costs nothing to send: it is not cut, and all that is ready shares
// the next message, as far as the number of its tensors and the row indices of tables leave room
// there. A table with more of them than a message may have is sent as bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/base/retry_policy.h"
#include "common/client/session_types.h"
#include "common/tensor/tensor.h"
#include "proto/ps.pb.h"

namespace lockstep {

// For one gradient after another: once it has had some of the same size it allocates nothing.
// Thread-compatible. Times are of one monotonic clock.
class PushPlan {
 public:
  struct Piece {
    size_t variable;  // in the order of Add
    uint64_t offset;  // in bytes
    uint64_t size;
  };
  struct Outgoing {
    size_t message;
    bool ask;  // the header alone
    bool by_reference;
    absl::Span<const Piece> pieces;  // until it is answered
  };
  // A gradient. Its bytes are the indices', then the values', as they travel.
  struct Variable : GradientTensor {
    bool by_reference = false;  // the ps sees the values where they are
    // Of dense float32 values that travel in half precision: as bfloat16 or float16.
    std::optional<DType> narrow_type = {};

    uint64_t index_bytes() const { return indices.size() * sizeof(int64_t); }
    DType type() const { return narrow_type.value_or(values.dtype); }
    uint64_t num_bytes() const {
      return index_bytes() + static_cast<uint64_t>(values.num_elements()) * SizeOf(type());
    }
  };

  PushPlan(const SessionOptions& options, GlobalStep local_step, int num_variables);
  // Begins the next gradient. Nothing of the one before is in flight.
  void Restart(GlobalStep local_step, int num_variables);

  // At most num_variables times.
  void Add(Variable gradient);
  bool AllAdded() const { return variables_.size() == num_variables_; }
  const Variable& variable(size_t index) const { return variables_[index].of; }

  // What to send now. It is in flight until OnReply or OnError.
  std::optional<Outgoing> Next(absl::Duration now);
  void OnReply(size_t message, const PushReply& reply, absl::Duration now);
  void OnError(size_t message, const absl::Status& error, absl::Duration now);
  // The ps is another one now: everything is sent again and judged anew, also what is over.
  void Repeat();
  bool IsInFlight() const { return in_flight_ > 0; }
  // Sends nothing more: the result is CANCELLED.
  void Cancel() { fatal_.Update(absl::CancelledError("the push was cancelled")); }

  // When Next should be asked again though nothing has happened; nullopt: no need.
  std::optional<absl::Duration> WakeAt() const;

  // Set when all is over: every variable was added, nothing is in flight, and all verdicts are
  // known or an error is final.
  std::optional<absl::StatusOr<PushSummary>> Result() const;

 private:
  enum class State { kOpen, kReady, kInFlight, kAcknowledged };
  struct Message {
    State state = State::kOpen;
    bool ask = false;    // before sending
    bool asked = false;  // and the answer was: pending
    bool by_reference = false;
    std::vector<Piece> pieces;
  };
  struct Progress {
    Variable of;
    Verdict verdict = PENDING;
  };

  // At the end, with the given state. Its pieces have the memory of an earlier message's.
  Message& AddMessage(State state, bool by_reference = false);
  void Cut(size_t variable);
  void AddReference(size_t variable);
  bool RecordOutcomes(const Message& message, const PushReply& reply);
  // The ps has not the memory in which the message's variables are.
  void SendBytesOf(size_t message);
  void AddToBucket(size_t variable, uint64_t size);
  void CloseBucket();
  bool HasPending(const Message& message) const;
  // The message to send next, or nullptr.
  Message* Choose();
  void RepeatLost(absl::Duration now);

  const SessionOptions options_;
  GlobalStep local_step_;
  size_t num_variables_;
  RetryPolicy retry_;
  std::vector<Progress> variables_;
  std::vector<Message> messages_;
  std::vector<std::vector<Piece>> spare_pieces_;  // of earlier gradients' messages; empty
  std::optional<size_t> bucket_;                  // the open message
  uint64_t bucket_size_ = 0;
  std::optional<size_t> unsent_;  // by reference: new gradients join it until it is sent
  uint64_t unsent_size_ = 0;
  uint64_t unsent_index_bytes_ = 0;
  size_t first_open_ = 0;  // every message before is acknowledged
  int in_flight_ = 0;
  bool straggling_ = false;  // what comes now would be dropped
  int repeats_ = 0;          // of everything that was lost
  PushSummary summary_;
  absl::Status fatal_;
};

}  // namespace lockstep
