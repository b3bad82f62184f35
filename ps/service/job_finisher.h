// The end of a ps's job, as the chief tells it.
#pragma once

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/exit_code.h"
#include "proto/ps.pb.h"
#include "ps/service/command_watch.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// How the job of a ps ended.
struct JobEnd {
  ExitCode code = ExitCode::kDone;  // for the process to end with
  std::string reason;               // why the job was given up, printable; empty when it is done
};

// Ends the job of one process, or its part in the job. It refuses chiefs from then on. Thread-safe.
class JobFinisher {
 public:
  // Both outlive it.
  JobFinisher(Shard* shard, CommandWatch* watch) : shard_(shard), watch_(watch) {}

  // Answers what is parked at the shard and at the watch. Errors of Shard::Finish;
  // INVALID_ARGUMENT: an exit code that is none. A ps without variables takes the end of a job that
  // is done or was interrupted, not its failure.
  absl::StatusOr<JobEnd> Finish(const FinishRequest& request);

  // The process ends, and its job goes on.
  void Leave() { is_leaving_.store(true); }

  // OK until the job is over. UNAVAILABLE then.
  absl::Status CheckUnfinished() const;
  // OK until one of the two. UNAVAILABLE then: for a chief the process is as good as gone.
  absl::Status CheckServing() const;

 private:
  Shard* const shard_;
  CommandWatch* const watch_;
  std::atomic<bool> is_finished_ = false;
  std::atomic<bool> is_leaving_ = false;
};

}  // namespace lockstep::ps
