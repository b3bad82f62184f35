// A worker as the ps and the chief see one: the real strategy over the real sessions, with a tower
// that computes a gradient which is a function of (worker, push_seq, stamp, variable) alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/callback.h"
#include "common/client/failover_transport.h"
#include "tests/sim/address_book.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/sim_chiefs.h"
#include "tests/sim/sim_group.h"
#include "tests/support/ps_data.h"
#include "worker/cache/variable_layout.h"
#include "worker/service/last_reply.h"
#include "worker/strategy/parameter_server/shard_group.h"
#include "worker/strategy/update_strategy.h"

namespace lockstep::sim {

struct SimWorkerOptions {
  WorkerIndex index;
  std::string cluster;  // canonical text
  std::vector<std::string> ps_addresses;
  absl::Duration least_compute = absl::Milliseconds(1);
  absl::Duration most_compute = absl::Milliseconds(5);
  absl::Duration heartbeat_pause = absl::Milliseconds(20);  // after one that was refused
  // The gradient is a function of its stamp, whichever process makes it; otherwise of its number in
  // the process too.
  bool same_every_time = false;
  // Of the chunks of a process that pushes and fetches in chunks, in bytes.
  int least_chunk = 4;
  int most_chunk = 16;
  uint64_t batches = UINT64_MAX;  // that a process has; then its data ends
};

// Keeps itself alive while a call of its own is under way.
class SimWorker : public std::enable_shared_from_this<SimWorker> {
 public:
  // What is pointed to outlives the worker. `book` has the ps.
  SimWorker(SimWorkerOptions options, const AddressBook* book, SimChiefs* chief, Network* network,
            SimMembers* members, EventQueue* events, Random* random, History* history);

  // As a new process.
  void Start();
  // kill -9: whatever is under way is never heard of again.
  void Kill();
  // SIGTERM, in a job whose workers come and go: it goes on until a view leaves it out.
  void Depart() { departs_ = true; }

  // OK: told that the job is done. Otherwise why this worker gave up. None while it works.
  const std::optional<absl::Status>& end() const { return end_; }
  GlobalStep local_step() const { return local_step_; }
  // Where each of its processes began, without a token.
  const std::vector<GlobalStep>& starts() const { return starts_; }
  // How often it has been started, by itself too: the chief may give it up after a silence.
  int processes() const { return processes_; }
  // Gradients pushed by this process.
  uint64_t pushes() const { return pushes_; }
  bool is_dead() const { return member_ == nullptr; }
  // "ended: OK", "computes", or what it waits for.
  std::string Describe() const;

 private:
  struct StepRows {
    std::vector<std::vector<int64_t>> memory;
    std::vector<std::span<const int64_t>> views;
  };

  // What a process trains with.
  struct Training {
    ~Training() { strategy->Cancel(); }

    worker::VariableLayout layout;
    worker::VariableLayout loss_layout;  // of a replicated job
    SimGroupSource* groups = nullptr;    // the same; the strategy's
    // By variable, of the tables those that the data of a step has: this one, and the next one.
    StepRows rows, next_rows;
    std::vector<std::unique_ptr<TensorTransport>> shards;
    std::vector<TensorTransport*> transports;  // these
    std::vector<FailoverTransport*> movable;   // these, of a job with copies of shards; or none
    std::unique_ptr<worker::UpdateStrategy> strategy;
  };

  // Ends its present life.
  void Leave();
  // `step` in this worker's present life, or nothing.
  template <typename T>
  Callback<T> Mine(Callback<T> step);
  void Later(absl::Duration delay, std::function<void()> step);

  Node node() const { return {Role::kWorker, static_cast<uint32_t>(options_.index.value())}; }
  Link LinkToChief() const;
  void Register();
  void Beat();
  HeartbeatRequest MakeHeartbeat() const;
  void EndOfData();
  // A view without this worker has begun, as it was told to end.
  void SayGoodbye();
  // Beside the calls that follow one another.
  void Tell();
  void Send(const HeartbeatRequest& heartbeat);
  bool asynchronous() const { return job_.job().sync().has_asynchronous(); }
  bool replicated() const { return job_.job().strategy().has_replicated(); }
  void MakeTraining();
  void ConnectShards();
  // Where the chief says that they are.
  void MoveShards(const HeartbeatReply& reply);
  std::unique_ptr<worker::UpdateStrategy> MakeReplicated(
      const worker::ShardGroupOptions& options, const worker::ShardGroupResources& resources);
  // Without the calls of its present life.
  void DropTraining();
  StepRows RowsAt(GlobalStep step) const;
  void BeginStep(GlobalStep step);
  // Writes down what the tower is given.
  void Note(const worker::StepValues& values);
  void Compute(GlobalStep step, const worker::StepValues& values);
  void EndStep(std::optional<worker::StepInput> predicted);
  void OnOutcome(const absl::StatusOr<worker::StepOutcome>& outcome);
  void OnFailure(const absl::Status& error);
  // True: the caller repeats its call after a pause. False: this worker ended or begins anew.
  bool MayRepeat(const absl::Status& error);
  void End(absl::Status status);

  const SimWorkerOptions options_;
  const AddressBook* const book_;
  SimChiefs* const chief_;
  Network* const network_;
  SimMembers* const members_;
  EventQueue* const events_;
  Random* const random_;
  History* const history_;

  uint64_t life_ = 0;
  int processes_ = 0;
  SimMember* member_ = nullptr;  // of its present life
  uint64_t incarnation_ = 0;
  std::optional<absl::Status> end_;
  std::vector<GlobalStep> starts_;
  RegisterTaskReply job_;
  std::optional<worker::LastReply> last_reply_;  // of its present life
  std::shared_ptr<Training> training_;
  GlobalStep local_step_;
  uint64_t pushes_ = 0;
  bool out_of_data_ = false;
  // Of the next step, in a job whose workers come and go.
  std::optional<ReplicaShare> share_;
  bool has_taken_part_ = false;
  bool departs_ = false;
};

template <typename T>
Callback<T> SimWorker::Mine(Callback<T> step) {
  return [self = shared_from_this(), life = life_,
          step = std::move(step)](absl::StatusOr<T> result) mutable {
    if (self->life_ == life && !self->end_.has_value()) step(std::move(result));
  };
}

}  // namespace lockstep::sim
