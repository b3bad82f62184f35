// A job of a cluster script on real shards, in process: the chief that keeps two steps granted, and
// workers that push and dequeue when they are told to.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "ps/shard/shard.h"
#include "tests/support/await.h"

namespace lockstep::oracle {

// Not thread-safe. Nothing waits: what a call does not answer at once stays parked.
class ClusterJob {
 public:
  // FIFO tokens, as many replicas, tokens and values as the script says; its variables dealt out
  // over the shards in turn.
  static absl::StatusOr<std::unique_ptr<ClusterJob>> Start(const nlohmann::json& script,
                                                           uint32_t num_shards);
  ~ClusterJob();
  ClusterJob(const ClusterJob&) = delete;
  ClusterJob& operator=(const ClusterJob&) = delete;

  // One training step of a worker that is not waiting: pushes these gradients, stamped with its
  // local step, then asks for the token that ends the step.
  absl::Status Run(uint32_t worker, const nlohmann::json& gradients);
  // Workers whose step has ended since the last call, in the order of their numbers.
  std::vector<uint32_t> TakeFinished();

  std::vector<uint32_t> Waiting() const;
  std::vector<int64_t> LocalSteps() const;
  int64_t GlobalStepNow() const { return shards_[0]->GetView().global_step.value(); }
  // At the global step's version, which must be there.
  absl::StatusOr<std::vector<double>> Read(const std::string& variable);

 private:
  struct Worker {
    GlobalStep local_step;
    uint64_t runs = 0;  // also numbers its pushes and dequeues
    std::optional<Answer<ps::Token>> token;
  };

  explicit ClusterJob(const nlohmann::json& script, uint32_t num_shards);
  absl::Status CreateVariables(const nlohmann::json& script, const std::string& checkpoint);
  void Grant(GlobalStep step);
  // Commits the steps that all shards have closed and grants further ones.
  absl::Status GoOn();
  absl::Status Push(uint32_t worker, uint32_t shard, const nlohmann::json& gradients);

  Placement placement_;
  uint32_t required_;
  float learning_rate_;
  std::vector<std::unique_ptr<ps::Shard>> shards_;
  std::vector<Worker> workers_;
  GlobalStep open_;                                   // first step that is not committed
  absl::flat_hash_map<GlobalStep, uint32_t> closed_;  // by how many shards
  absl::Status error_;                                // of a grant
};

}  // namespace lockstep::oracle
