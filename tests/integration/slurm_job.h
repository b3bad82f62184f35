// A job on two nodes of a Slurm, submitted with the users' script. A timeout fails the test case
// and prints all logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/integration/cluster.h"
#include "tests/integration/slurm_cluster.h"

namespace lockstep::test {

class SlurmJob {
 public:
  // `slurm` outlives this. Its checkpoints are in the folder "checkpoints".
  SlurmJob(SlurmCluster* slurm, JobText job);

  // In the same folder as an earlier one, which has ended. What follows is about the new one.
  void Submit(const std::vector<std::string>& chief_flags = {});

  const std::string& id() const { return id_; }
  std::string Field(const std::string& field) { return slurm_.JobField(id_, field); }
  void AwaitState(const std::string& state);
  // Once Slurm has put the job into its queue again: starts it without Slurm's wait of 2 minutes.
  void StartAgain();

  // Of a task, "chief" or "worker-0", over all restarts.
  std::string Log(const std::string& task) const;
  // How often it has `text`.
  int Count(const std::string& task, const std::string& text) const;
  // How often a chief has begun at the checkpoint of this step.
  int CountRestored(int64_t step) const;
  // The job has begun.
  void AwaitLog(const std::string& task, const std::string& text, int count);
  // The step of the newest checkpoint that the chief's log names.
  int64_t SavedStep() const;
  std::string Checkpoint(int64_t step) const;

  // Waits for a step beyond this one and returns it.
  int64_t AwaitStepBeyond(int64_t step);
  void KillWorker(int index);
  bool HasProcesses() const;

  // What is in the job's files, for a failing test.
  std::string Logs() const;
  [[noreturn]] void Fail(const std::string& why) const;

 private:
  std::string folder() const { return files_.folder().path(); }
  // Of the number that Slurm has given to the job.
  std::string run_folder() const;
  std::string spec_path() const { return run_folder() + "/cluster.json"; }
  // The chief's step; nothing while it does not answer.
  std::optional<int64_t> Step() const;

  SlurmCluster& slurm_;
  Cluster files_;  // for its job file; nothing of it runs
  const std::string job_path_;
  std::string id_;
};

}  // namespace lockstep::test
