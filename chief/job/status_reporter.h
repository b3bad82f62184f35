// Puts into words what a job is and waits for: for the status, reminders, errors and workers.
//
// Reads what the controller owns, on the executor's thread.
#pragma once

#include <string>
#include <vector>

#include "chief/job/job_facts.h"
#include "chief/job/run_record.h"
#include "chief/membership/membership.h"
#include "chief/plan/plan.h"
#include "proto/status.pb.h"

namespace lockstep::chief {

// One ps: "ps 0 waits for conv1/kernel (1 of 2, from worker 0)". Empty when it waits for nothing.
std::string DescribePending(size_t shard, const ShardProgress& progress);

class StatusReporter {
 public:
  // All outlive the reporter.
  StatusReporter(const JobPlan* plan, const Membership* membership, const RunRecord* record);

  void FillStatus(const JobFacts& facts, ProcessStatus* status) const;

  // Reads on after "waiting for". Empty when the job waits for nothing unusual.
  std::string WaitingFor(const JobFacts& facts) const;
  // What a worker that registers waits for.
  std::string AdmissionWaitsFor(const JobFacts& facts) const;
  // What the gradients at the shards lack, of all shards; empty: nothing, or it is not known.
  std::string Pending(const ProgressByShard& progress) const;
  // Who is missing for the step, or for the last evaluation, and how many it takes.
  std::string Shortage(const JobFacts& facts) const;
  // Of a job that ends early.
  std::string SavingWaitsFor(const DrainFacts& facts) const;

 private:
  std::string State(const JobFacts& facts) const;
  // Whether the step is known, or long enough silent to be said, not to close as things are.
  bool MustWait(const JobFacts& facts) const;
  std::string Need(const JobFacts& facts) const;
  std::string TrainingWaitsFor(const JobFacts& facts) const;
  std::string CompletingWaitsFor(const JobFacts& facts) const;
  void FillJob(const JobFacts& facts, JobStatus* job) const;
  void FillMember(size_t worker, absl::Duration now, MemberStatus* member) const;
  void FillShard(size_t shard, const ShardFacts& facts, ShardSummary* summary) const;

  const JobPlan& plan_;
  const Membership& membership_;
  const RunRecord& record_;
  const std::vector<uint32_t> shard_variables_;
  const uint32_t variables_per_gradient_;
};

}  // namespace lockstep::chief
