// The messages in which the gradients of one session travel, one gradient after another.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/push_plan.h"
#include "common/client/session_types.h"
#include "common/transport/tensor_transport.h"
#include "proto/ps.pb.h"

namespace lockstep {

// A push to be made. Its tensors point into the gradients.
struct PushCall {
  size_t message = 0;
  bool is_whole_gradient = false;  // of all variables, every byte
  uint64_t num_bytes = 0;
  std::shared_ptr<PushRequest> header;
  std::vector<OutgoingTensor> tensors;
};

// What comes of one.
using PushAnswer = absl::StatusOr<std::shared_ptr<PushReply>>;

// Thread-compatible. A gradient like the ones before allocates its messages alone.
class GradientMessages {
 public:
  // `transport` says what it sends by reference, and whether it rounds.
  GradientMessages(const SessionOptions& options, const TensorTransport* transport)
      : options_(options), transport_(transport) {}

  // Under way: it has not been judged.
  bool is_active() const { return has_gradient_ && !is_over_; }
  void Begin(PushSeq push_seq, GlobalStep local_step, int num_tensors);
  void Add(const GradientTensor& gradient);
  bool AllAdded() const { return plan_->AllAdded(); }

  std::optional<PushCall> Next(absl::Duration now);
  // `call` is over.
  void OnReply(const PushCall& call, const PushAnswer& reply, absl::Duration now);
  std::optional<absl::Duration> WakeAt() const;
  // Ends the gradient, if it is over. One that was judged is kept, to be sent again, until Forget,
  // Begin or TakeLoss.
  std::optional<absl::StatusOr<PushSummary>> TakeResult();
  // Drops a gradient that is kept and cannot be sent again. Returns why not.
  std::optional<absl::Status> TakeLoss();
  // As PushPlan::Repeat, of the gradient that is kept.
  void Repeat();
  // Nothing more of a gradient that is over is sent. False: some of it is in flight.
  bool Forget();
  void Cancel();

 private:
  bool IsWholeGradient(const PushPlan::Outgoing& outgoing) const;
  void AddPiece(const PushPlan::Piece& piece, const PushPlan::Outgoing& outgoing,
                PushCall* call) const;

  const SessionOptions options_;
  const TensorTransport* const transport_;
  std::optional<PushPlan> plan_;  // of the last gradient; its memory is the next one's
  bool has_gradient_ = false;     // it is under way, or kept
  bool is_over_ = false;          // it is kept
  PushSeq push_seq_;
  GlobalStep local_step_;
  int num_tensors_ = 0;
};

}  // namespace lockstep
