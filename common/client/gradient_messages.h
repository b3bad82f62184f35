// The messages in which the gradients of one session travel, one gradient after another.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/ps_client.h"
#include "common/client/push_plan.h"
#include "common/client/session_types.h"
#include "proto/ps.pb.h"

namespace lockstep {

// A push to be made. Its payload points into the gradients, and into `rounded`.
struct PushCall {
  // Elements that are rounded as their message is sent. The same again when it is sent again, since
  // they have not changed.
  struct Rounding {
    size_t span;  // of the payload
    DType type;
    std::span<const float> elements;
  };

  size_t message = 0;
  bool is_whole_gradient = false;
  uint64_t num_bytes = 0;
  PushRequest header;
  std::vector<std::span<const std::byte>> payload;
  std::vector<Rounding> roundings;
  std::shared_ptr<Tensor> rounded;  // memory for their results; null: there are none

  // Before it is sent.
  void Round();
};

// Thread-compatible. Between gradients nothing is allocated anew but messages.
class GradientMessages {
 public:
  // `ps` says what it sees by reference.
  GradientMessages(const SessionOptions& options, const PsData* ps) : options_(options), ps_(ps) {}

  bool is_active() const { return plan_.has_value(); }
  void Begin(PushSeq push_seq, GlobalStep local_step, int num_tensors);
  void Add(const GradientTensor& gradient);
  bool AllAdded() const { return plan_->AllAdded(); }

  std::optional<PushCall> Next(absl::Duration now);
  // `call` is over.
  void OnReply(const PushCall& call, const absl::StatusOr<PushReply>& reply, absl::Duration now);
  std::optional<absl::Duration> WakeAt() const;
  // Ends the gradient, if it is over.
  std::optional<absl::StatusOr<PushSummary>> TakeResult();
  void Cancel();

 private:
  void AddPiece(const PushPlan::Piece& piece, bool ask, PushCall* call) const;
  std::shared_ptr<Tensor> TakeMemory();

  const SessionOptions options_;
  const PsData* const ps_;
  std::optional<PushPlan> plan_;  // while a gradient is under way
  PushSeq push_seq_;
  GlobalStep local_step_;
  int num_tensors_ = 0;
  std::vector<std::shared_ptr<Tensor>> spare_;  // memory for the rounded elements of a message
};

}  // namespace lockstep
