// How anybody talks to one ps. The gRPC implementation is in this folder; tests and the simulator
// have their own.
//
// Thread-safe. Every callback is called exactly once, on a thread of the client's, never under a
// lock of the client's. Calls carry their own deadlines; a parked call that reaches its deadline
// ends with DEADLINE_EXCEEDED and may be issued again. UNAVAILABLE: not reachable now; try again.
// Destruction cancels what is in flight and waits for the callbacks.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/ps.pb.h"

namespace lockstep {

template <typename T>
using Done = std::function<void(absl::StatusOr<T>)>;

// What a chief does to a ps.
class PsControl {
 public:
  virtual ~PsControl() = default;
  virtual void GetView(Done<SetViewReply> done) = 0;
  virtual void SetView(const SetViewRequest& request, Done<SetViewReply> done) = 0;
  virtual void CreateVariables(const CreateVariablesRequest& request,
                               Done<CreateVariablesReply> done) = 0;
  virtual void Grant(const GrantRequest& request, Done<GrantReply> done) = 0;
  virtual void CommitStep(const CommitStepRequest& request, Done<CommitStepReply> done) = 0;
  virtual void Save(const SaveRequest& request, Done<SaveReply> done) = 0;
  virtual void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                               Done<ReleaseSnapshotReply> done) = 0;
  virtual void Finish(const FinishRequest& request, Done<FinishReply> done) = 0;
};

// The answer to a pull: the header (payload empty) and the bytes, still in the pieces in which they
// came.
class PulledValues {
 public:
  virtual ~PulledValues() = default;
  virtual const PullReply& header() const = 0;
  // Copies the payload into `targets`, one per piece of the header in its order; each must have the
  // piece's size (INVALID_ARGUMENT otherwise). One pass, no other copy.
  virtual absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const = 0;
};

// What a worker does to a ps.
class PsData {
 public:
  virtual ~PsData() = default;
  // `header` has no payload; `payload` is the pieces' bytes and stays valid and unchanged until
  // `done` is called.
  virtual void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                    Done<PushReply> done) = 0;
  virtual void Pull(const PullRequest& request, Done<std::unique_ptr<PulledValues>> done) = 0;
  virtual void DequeueToken(const DequeueTokenRequest& request, Done<DequeueTokenReply> done) = 0;
  // Ends what is in flight, and every later call at once, with CANCELLED: for a worker that stops.
  virtual void Cancel() = 0;
};

struct ClientOptions {
  std::string address;  // "host:port"
  std::string name;     // "ps 1", for error messages
};

// Neither connects yet: the first call does. Both talk through one channel of their own.
std::unique_ptr<PsControl> MakePsControl(const ClientOptions& options);
std::unique_ptr<PsData> MakePsData(const ClientOptions& options);

}  // namespace lockstep
