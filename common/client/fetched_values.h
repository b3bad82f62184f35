// The targets of one session's fetches: what is requested for them, and where replies leave their
// values.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/fetch_plan.h"
#include "common/client/session_types.h"
#include "common/transport/tensor_transport.h"
#include "proto/ps.pb.h"

namespace lockstep {

// A pull to be made.
struct FetchCall {
  size_t index = 0;
  std::shared_ptr<PullRequest> request;
  bool is_narrow = false;
  bool accepts_references = false;
};

// Thread-compatible, but for CopyToTargets.
class FetchedValues {
 public:
  using Reply = TensorReply<PullReply>;

  // `transport` says whether replies may be references, and whether values are rounded.
  FetchedValues(const SessionOptions& options, const TensorTransport* transport)
      : options_(options), transport_(transport), plan_(options) {}

  // Not while a fetch is under way.
  void SetTargets(std::vector<FetchTarget> targets);
  void SetTarget(size_t target, MutableTensorView value,
                 std::optional<std::span<const int64_t>> rows);

  bool is_active() const { return is_active_; }
  void Begin(GlobalStep version, FetchKind kind);
  std::optional<FetchCall> Next(absl::Duration now);

  // Copies a reply to the targets of its request, which nobody else touches meanwhile: needs no
  // lock. ABORTED: the ps has begun to write there again.
  absl::Status CopyToTargets(const FetchCall& call, const Reply& reply) const;
  // `call` has ended: with `reply`, which has been copied with this status, or with an error.
  void OnReply(const FetchCall& call, absl::StatusOr<Reply> reply, const absl::Status& copied,
               absl::Duration now);
  void OnUnanswered(const FetchCall& call) { plan_.OnUnanswered(call.index); }
  std::optional<absl::Duration> WakeAt() const;
  // Ends the fetch, if it is over: the version that all targets have. Values that the ps does not
  // share after all are requested as bytes.
  std::optional<absl::StatusOr<GlobalStep>> TakeResult();
  void Cancel() { plan_.Cancel(); }

  // After a fetch, until the next one.
  const void* Value(size_t target) const;
  // Of the last fetch of a slot.
  std::span<const float> scalars() const { return scalars_; }

 private:
  void Start(bool shares_values, FetchKind kind);
  // Whether the reply must be kept since a target stays in it.
  bool StaysInPlace(const FetchCall& call, const ReceivedTensors& values) const;
  // INTERNAL, with the peer named.
  absl::Status BadReply(absl::string_view what) const;
  // When all is there.
  void FindValuesInPlace();
  // Of a unit in a piece that names no rows: an element on the wire, or a byte.
  uint64_t UnitBytes(bool is_narrow) const;

  const SessionOptions options_;
  const TensorTransport* const transport_;
  std::vector<FetchTarget> targets_;
  std::vector<FetchPlan::Extent> extents_;
  FetchPlan plan_;
  GlobalStep version_;  // requested
  std::vector<float> scalars_;
  bool is_active_ = false;
  bool shares_values_ = false;
  // By request: the reply, where it is in the ps's memory; otherwise none.
  std::vector<std::optional<ReceivedTensors>> in_place_;
  std::vector<ReceivedTensors> kept_;  // of the fetch before
  // By target: where the ps's memory has all of it; otherwise null.
  std::vector<const std::byte*> shown_;
};

}  // namespace lockstep
