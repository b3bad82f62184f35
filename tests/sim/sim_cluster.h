// A whole job in one thread: the real chief and the real shards, workers that follow the protocol,
// and between them a network that delays, reorders and loses. Everything follows from one seed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chief/service/job_run.h"
#include "common/client/ps_client.h"
#include "ps/shard/shard.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/history.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_worker.h"

namespace lockstep::sim {

struct SimOptions {
  uint64_t seed = 0;
  uint32_t ps = 1;
  uint32_t workers = 2;
  uint32_t aggregate = 2;
  TokenPolicy token_policy = PER_REPLICA;
  int64_t init_tokens = -1;
  bool asynchronous = false;
  std::optional<int64_t> max_staleness;
  int64_t steps = 5;
  std::vector<int64_t> variables = {3, 2};  // elements of each, dealt out over the ps
  NetworkOptions network;
  absl::Duration least_compute = absl::Milliseconds(1);
  absl::Duration most_compute = absl::Milliseconds(5);
};

inline constexpr float kInitialValue = 8;
inline constexpr float kLearningRate = 0.125f;

class SimCluster {
 public:
  // Starts nothing.
  explicit SimCluster(const SimOptions& options);
  ~SimCluster();

  void StartChief();
  // The chief and every worker.
  void StartAll();
  SimWorker& worker(uint32_t index) { return *workers_[index]; }

  // Lets time pass until the chief has ended and every worker that was started has; false after
  // `limit` of simulated time.
  bool RunToEnd(absl::Duration limit);
  bool RunUntil(const std::function<bool()>& done, absl::Duration limit) {
    return events_.RunUntil(done, limit);
  }

  const SimOptions& options() const { return options_; }
  const History& history() const { return history_; }
  EventQueue& events() { return events_; }
  Random& random() { return random_; }
  chief::JobRun& run() { return *run_; }
  GlobalStep global_step() const { return run_->record().global_step; }
  const ps::Shard& shard(size_t index) const { return *shards_[index]; }
  // The chief's.
  const std::optional<absl::Status>& end() const { return end_; }
  // T.
  int tokens_per_step() const;
  // Worker processes that began at this step.
  int Starts(GlobalStep step) const;

 private:
  class EventExecutor final : public chief::Executor {
   public:
    explicit EventExecutor(EventQueue* events) : events_(events) {}
    void Post(absl::AnyInvocable<void()> work) override {
      events_->After(absl::ZeroDuration(), std::move(work));
    }

   private:
    EventQueue* const events_;
  };

  void Tick();

  const SimOptions options_;
  EventQueue events_;
  Random random_;
  Network network_;
  EventExecutor executor_;
  History history_;
  std::vector<std::unique_ptr<ps::Shard>> shards_;
  std::vector<std::unique_ptr<PsControl>> local_controls_, controls_;
  std::vector<std::unique_ptr<PsData>> local_data_, recorded_data_, data_;
  std::optional<chief::JobRun> run_;
  std::optional<absl::Status> end_;
  std::vector<std::shared_ptr<SimWorker>> workers_;
};

}  // namespace lockstep::sim
