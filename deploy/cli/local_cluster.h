// The cluster that `lockstep up` starts on this machine: who is in it and with which commands.
#pragma once

#include <string>
#include <vector>

#include "common/config/cluster_spec.h"
#include "deploy/cli/child_process.h"

namespace lockstep::deploy {

struct LocalPlan {
  std::string bin_dir;  // where ps/ps, worker/worker and chief/chief are
  std::string run_dir;  // has a folder logs
  std::string cluster_path;
  std::string job_path;
  // What every task shows (ShownBy), but for its own certificate.
  std::string token_path;    // the job's token; empty: none
  std::string tls_folder;    // with the certificates of all (job_certificates.h); empty: none
  std::string summary_path;  // the chief writes it
  std::string start_flag;    // of chief 0: "--resume", ...; empty: none
  std::string log_level;
  int cores = 1;
  std::vector<std::string> worker_sleeps;   // --sleep of worker 0, 1, ...; empty: none
  std::vector<std::string> worker_stalls;   // --stall of them
  std::vector<std::string> worker_devices;  // --device of the workers, in turn; empty: theirs
  std::string gpu_memory_limit;             // of each worker; empty: theirs
  bool autotune = false;                    // of each worker
  std::string timeline_dir;  // worker k's --timeline is worker-k.csv in it; empty: none
};

struct Task {
  Role role = Role::kWorker;
  int index = 0;
  Command command;
  Command successor;  // starts it again in mid-run
  // Until the job has begun `command` starts it again: its flag names a start that is not yet made,
  // in whose place the successor would take the newest checkpoint.
  bool repeats_start = false;
};

// "chief", of one that stands by "chief 1"; "ps 0", "worker 2".
std::string TaskName(Role role, int index);

// The tasks of `cluster`: chiefs, of which all but the first stand by, ps, workers. The workers
// share the cores.
std::vector<Task> PlanTasks(const ClusterSpec& cluster, const LocalPlan& plan);

// The flags by which a task shows who it is: `task` is "ps-0", "reader", ... as its certificate is
// called.
std::vector<std::string> ShownBy(const std::string& task, const LocalPlan& plan);

// The spec as the JSON file that every task reads.
std::string ClusterJsonText(const ClusterSpec& cluster);

}  // namespace lockstep::deploy
