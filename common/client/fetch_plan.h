// Decides which request of a fetch goes next: cuts and joins targets into requests, keeps the
// window, sees to it that all targets end with one version. Sends nothing and knows no clock.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/retry_policy.h"
#include "common/client/session_types.h"

namespace lockstep {

// Thread-compatible. Times are of one monotonic clock. One fetch after another allocates nothing
// once the largest has been made.
class FetchPlan {
 public:
  // What is to be fetched of a target: bytes, or elements or rows that are never cut.
  struct Extent {
    uint64_t units = 0;
    uint64_t unit_bytes = 1;  // on the wire, both ways
    bool may_be_reference = false;
    bool stays = false;      // there, so that its size does not matter
    bool is_narrow = false;  // travels in half the width
  };
  struct Piece {
    size_t target;
    uint64_t first;  // unit
    uint64_t count;  // of units
  };
  struct Outgoing {
    size_t request;
    GlobalStep version;
    bool by_reference;  // the answer may be references to the ps's memory
    bool is_narrow;     // of all its targets
  };

  explicit FetchPlan(const SessionOptions& options)
      : options_(options), retry_(CallKind::kParked, {.patience = options.patience}) {}

  // Not before the last fetch was over. `targets` in their order; of one without units nothing is
  // fetched.
  void Start(GlobalStep version, std::span<const Extent> targets, FetchKind kind);
  // Of the fetch that was started.
  size_t num_requests() const { return num_requests_; }
  const std::vector<Piece>& pieces(size_t request) const { return requests_[request].pieces; }
  // What to send now. It is in flight until OnReply or OnError.
  std::optional<Outgoing> Next(absl::Duration now);
  // The values of `version` are in the targets of the request.
  void OnReply(size_t request, GlobalStep version);
  void OnError(size_t request, const absl::Status& error, absl::Duration now);
  // It was not answered, for no reason that says anything about the ps: sent again at once.
  void OnUnanswered(size_t request);
  // Sends nothing more: the result is CANCELLED.
  void Cancel() { fatal_.Update(absl::CancelledError("the fetch was cancelled")); }
  // The ps wrote over the values, in its own memory, while they were being read.
  void OnOverwritten(size_t request);

  // When Next should be asked again though nothing has happened; nullopt: no need.
  std::optional<absl::Duration> WakeAt() const;
  // Set when nothing is in flight, and all targets are filled or an error is final. OUT_OF_RANGE:
  // what was to stay in memory is not there, and too much for a message.
  std::optional<absl::StatusOr<GlobalStep>> Result() const;

 private:
  enum class State { kReady, kInFlight, kFilled };
  struct Request {
    std::vector<Piece> pieces;
    State state = State::kFilled;
    GlobalStep version;  // asked for, then received
    bool by_reference = false;
    bool is_narrow = false;
    int overwritten = 0;  // times
  };

  uint64_t MostBytes(const Extent& extent) const;
  void Cut(std::span<const Extent> targets);
  void MakeReady(size_t request);
  // Its index.
  size_t AddRequest(const Extent& first);

  const SessionOptions options_;
  std::vector<Request> requests_;  // the first num_requests_ are of this fetch
  size_t num_requests_ = 0;
  size_t first_ready_ = 0;  // none before it is ready
  int window_ = 0;
  RetryPolicy retry_;
  GlobalStep version_;  // that all should have; or the lowest of any
  int in_flight_ = 0;
  size_t filled_ = 0;
  absl::Status fatal_;
};

}  // namespace lockstep
