// Decides which request of a fetch goes next: cuts and joins targets into requests, keeps the
// window, sees to it that all targets end with one version. Sends nothing and knows no clock.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/client/backoff.h"
#include "common/client/variable_puller.h"

namespace lockstep {

// Thread-compatible. Times are of one monotonic clock.
class PullPlan {
 public:
  struct Piece {
    size_t target;
    uint64_t offset;  // in bytes
    uint64_t size;
  };
  struct Outgoing {
    size_t request;
    GlobalStep version;
  };

  // `sizes`: bytes of each target.
  PullPlan(const PullerOptions& options, std::span<const uint64_t> sizes);

  // The same for every fetch.
  const std::vector<Piece>& pieces(size_t request) const { return requests_[request].pieces; }

  // Not before the last fetch was over.
  void Start(GlobalStep version, absl::Duration now);
  // What to send now. It is in flight until OnReply or OnError.
  std::optional<Outgoing> Next(absl::Duration now);
  // The values of `version` are in the targets of the request.
  void OnReply(size_t request, GlobalStep version, absl::Duration now);
  void OnError(size_t request, const absl::Status& error, absl::Duration now);

  // When Next should be asked again though nothing has happened; nullopt: no need.
  std::optional<absl::Duration> WakeAt() const;
  // Set when nothing is in flight, and all targets have one version or an error is final.
  std::optional<absl::StatusOr<GlobalStep>> Result() const;

 private:
  enum class State { kReady, kInFlight, kFilled };
  struct Request {
    std::vector<Piece> pieces;
    State state = State::kFilled;
    GlobalStep version;  // asked for, then received
  };

  const PullerOptions options_;
  std::vector<Request> requests_;
  Backoff backoff_;
  GlobalStep version_;  // that all should have
  int in_flight_ = 0;
  size_t filled_ = 0;
  absl::Status fatal_;
};

}  // namespace lockstep
