// A worker as the ps and the chief see one: it follows docs/protocol.md call by call, and computes
// a gradient that is a function of (worker, push_seq, stamp, variable) alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/client/ps_client.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_chiefs.h"

namespace lockstep::sim {

float GradientOf(WorkerIndex worker, PushSeq push_seq, GlobalStep stamp, uint32_t variable,
                 int64_t element);

struct SimWorkerOptions {
  WorkerIndex index;
  std::string cluster;  // canonical text
  absl::Duration least_compute = absl::Milliseconds(1);
  absl::Duration most_compute = absl::Milliseconds(5);
  // The gradient is a function of its stamp, whichever process makes it; otherwise of its number in
  // the process too.
  bool same_every_time = false;
  uint64_t batches = UINT64_MAX;  // that a process has; then its data ends
};

// Keeps itself alive while a call of its own is under way.
class SimWorker : public std::enable_shared_from_this<SimWorker> {
 public:
  // What is pointed to outlives the worker. `shards` in the cluster's order.
  SimWorker(SimWorkerOptions options, std::vector<PsData*> shards, SimChiefs* chief,
            Network* network, EventQueue* events, Random* random);

  // As a new process.
  void Start();
  // kill -9: whatever is under way is never heard of again.
  void Kill() { ++life_; }

  // OK: told that the job is done. Otherwise why this worker gave up. None while it works.
  const std::optional<absl::Status>& end() const { return end_; }
  GlobalStep local_step() const { return local_step_; }
  // Where each of its processes began, without a token.
  const std::vector<GlobalStep>& starts() const { return starts_; }
  // Gradients pushed by this process.
  uint64_t pushes() const { return push_seq_.value(); }

 private:
  // `step` in this worker's present life, or nothing.
  template <typename T>
  Done<T> Mine(std::function<void(absl::StatusOr<T>)> step);
  void Later(absl::Duration delay, std::function<void()> step);

  void Register();
  void Beat();
  HeartbeatRequest MakeHeartbeat() const;
  void EndOfData();
  bool asynchronous() const { return job_.job().sync().has_asynchronous(); }
  bool joins() const { return !asynchronous() && job_.job().sync().token_policy() == PER_REPLICA; }
  void PullAll();
  void Pull(size_t shard);
  void Compute();
  void Push(size_t shard);
  // With the wishes for the next step in the same call.
  void PushForNext(size_t shard, PushRequest request, const std::vector<float>& payload);
  // It comes to nothing without its answer: then it is made again, or this worker ends.
  void AnswerPush(size_t shard, const absl::StatusOr<PushReply>& reply);
  PullRequest PullOf(size_t shard, GlobalStep version) const;
  void Pushed();
  void GoOn(const DequeueTokenReply& token);
  void AskForToken();
  void AskAgain();
  // True: the caller repeats its call after a pause. False: this worker ended or begins anew.
  bool MayRepeat(const absl::Status& error);
  void End(absl::Status status);
  WorkerIdentity Identity() const;

  const SimWorkerOptions options_;
  const std::vector<PsData*> shards_;
  SimChiefs* const chief_;
  Network* const network_;
  EventQueue* const events_;
  Random* const random_;

  uint64_t life_ = 0;
  uint64_t incarnation_ = 0;
  std::optional<absl::Status> end_;
  std::vector<GlobalStep> starts_;
  RegisterTaskReply job_;
  GlobalStep local_step_;
  std::vector<GlobalStep> stamps_;  // asynchronous: by shard
  bool done_ = false;               // asynchronous: a shard has stopped
  PushSeq push_seq_;
  DequeueSeq dequeue_seq_;
  size_t pending_ = 0;  // shards that have not answered
  bool out_of_data_ = false;
  bool overtaken_ = false;  // the step was committed without this worker
  // What came with the last pushes: the token, and by shard the version of the values.
  std::optional<DequeueTokenReply> token_;
  std::vector<GlobalStep> ahead_;
};

}  // namespace lockstep::sim
