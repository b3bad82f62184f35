// A cluster of real processes for one test: cluster spec, job and logs in a folder of its own, free
// loopback ports. What still runs at the end of the test is killed.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/config/cluster_spec.h"
#include "common/rpc/credentials.h"
#include "deploy/cli/ports.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/virtual_network.h"

namespace lockstep::test {

// The fields of DataDef that name the shipped digits.
std::string DigitsData();

// What a test may change of the job that it runs: a small dense network on the digits.
struct JobText {
  int global_batch = 60;
  int max_steps = 60;
  std::string optimizer = "adam {} learning_rate { base: 0.01 }";
  std::string losses;      // of JobDef, in place of the optimizer
  std::string sync;        // fields of SyncDef
  std::string checkpoint;  // fields of CheckpointDef
  std::string evaluation;  // fields of EvaluationDef
  std::string data;        // fields of DataDef; empty: the digits
  std::string model;       // the model file; empty: 64 -> 32 -> 10
  std::string more;        // further fields of JobDef, such as local { }
};

class Cluster {
 public:
  // Writes the spec; starts nothing.
  Cluster(int ps, int workers, int chiefs = 1);

  const TemporaryFolder& folder() const { return folder_; }
  const ClusterSpec& spec() const { return spec_; }
  std::string spec_path() const { return folder_.Path("cluster.json"); }
  // Writes job and model files; returns the job's path.
  std::string WriteJob(const JobText& text) const;

  // All that is started from now on shares the token of this file.
  const std::string& UseToken();
  // All that is started from now on has TLS, with what `lockstep certificates` makes in this
  // folder; again: with certificates that are made anew.
  const std::string& UseTls();
  // Of a reader with that token or those certificates; null without.
  const rpc::Credentials* credentials() const { return credentials_.get(); }
  // The flags by which `task` shows who it is: "ps-0", "reader", as its certificate is called.
  std::vector<std::string> ShownBy(const std::string& task) const;
  // Each step of workers that are started from now on takes so much longer, without the CPU: a job
  // outlasts what a test does to it by its time, not by steps.
  void SlowDown(absl::Duration step) { sleep_ = step; }
  // Workers that are started from now on write their --example_log.
  void LogExamples() { logs_examples_ = true; }
  std::string ExampleLog(int worker) const;

  // All that is started as this task from now on runs on this host, which `network` has and at
  // whose address the spec has the task. Others stay on the caller's. The network outlives the
  // cluster.
  void PlaceOn(const VirtualNetwork& network, int host, Role role, int index);

  // Command lines, with --cluster.
  std::vector<std::string> Ps(int index) const;
  std::vector<std::string> Worker(int index) const;
  std::vector<std::string> Chief(const std::string& job_path, int index = 0) const;

  // Starts ps and workers, then a chief with this job and these flags besides. Those of an earlier
  // call must have ended, or be about to. `workers`: only so many, the first ones; -1: all.
  void StartAll(const JobText& job, const std::vector<std::string>& chief_flags = {},
                int workers = -1);
  // The same with the job of a file.
  void StartJob(const std::string& job_path, const std::vector<std::string>& chief_flags = {},
                int workers = -1);

  // Puts `spec`, of as many tasks, in place of loopback addresses. Before anything is started.
  void UseSpec(ClusterSpec spec);
  // Gives a task another address in the cluster spec's file. Who runs is not told.
  void Move(Role role, int index);
  // The ps that StartAll starts has these faults (tests/support/disk_faults.h), those that StartPs
  // starts have none. Its test needs //tests/support:preloaded_disk_faults.so.
  void SetDiskFaults(int ps, const std::string& faults) { disk_faults_[ps] = faults; }
  // Workers that are started from now on in this place compute on this machine's first GPU, where
  // that is the test's device (tests/support/test_device.h). Elsewhere on one that is imitated
  // (tests/support/cuda/fake_libraries.cc), of whose driver this call fails; -1: none. Then the
  // test needs //tests/support/cuda:libfake_cuda.so.
  void UseGpu(int worker, int64_t failing_call = -1);
  // Of a program that is to find the same GPU.
  std::vector<std::string> GpuEnvironment() const;
  // Such workers have so many, where GPUs are imitated, and use all.
  void ImitateGpus(int count) { imitated_gpus_ = count; }
  // In place of one that has ended, or was not started.
  void StartPs(int index);
  void StartWorker(int index);
  // The same job again.
  void StartChief(const std::vector<std::string>& flags = {}, int index = 0);
  void StartStandby(int index, std::vector<std::string> flags = {});

  Process& ps(int index) { return *ps_[index]; }
  Process& worker(int index) { return *workers_[index]; }
  Process& chief(int index = 0) { return *chiefs_[index]; }
  // The chief's summary, as written.
  std::string Summary(int index = 0) const { return folder_.Read(SummaryName(index)); }
  // Waits until the chief tells of a step beyond `step`; false after `timeout`, or at its end.
  bool WaitForStep(int64_t step, absl::Duration timeout, int chief = 0);
  // The processes' output and how they ended, for a failing test.
  std::string Logs();

 private:
  TemporaryFolder folder_;
  deploy::PortReservation ports_;
  std::vector<deploy::PortReservation> more_ports_;  // of tasks that have moved
  ClusterSpec spec_;
  std::string job_path_;
  // `task`: "ps-0", as its certificate is called.
  std::vector<std::string> Daemon(const std::string& program, const std::string& task) const;
  // The command of the task, on its host.
  std::vector<std::string> OnHost(Role role, int index, std::vector<std::string> command) const;
  static std::string SummaryName(int chief);

  std::string token_file_;  // empty: none
  std::string tls_folder_;  // empty: none
  std::shared_ptr<const rpc::Credentials> credentials_;
  bool logs_examples_ = false;
  absl::Duration sleep_;                    // of workers, in each step
  std::map<int, std::string> disk_faults_;  // by ps
  std::map<int, int64_t> failing_calls_;    // by worker that has a GPU
  int imitated_gpus_ = 1;                   // of each of those
  const VirtualNetwork* network_ = nullptr;
  std::map<std::pair<Role, int>, int> hosts_;  // by task
  std::vector<std::unique_ptr<Process>> ps_;
  std::vector<std::unique_ptr<Process>> workers_;
  std::vector<std::unique_ptr<Process>> chiefs_;
};

}  // namespace lockstep::test
