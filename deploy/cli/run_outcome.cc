#include "deploy/cli/run_outcome.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "deploy/cli/child_process.h"
#include "deploy/cli/local_cluster.h"

namespace lockstep::deploy {
namespace {

// SIGINT, or an operator's stop: who started the job has ended it.
constexpr int kToldToEnd = static_cast<int>(ExitCode::kInterrupted);

// A task that ends more often than that within the time will end again.
constexpr size_t kMostReturns = 5;
constexpr absl::Duration kReturnsWithin = absl::Minutes(1);

}  // namespace

RunOutcome::RunOutcome(std::vector<Member> members, const Rules& rules)
    : members_(std::move(members)),
      rules_(rules),
      returns_(members_.size()),
      ended_(members_.size()),
      alive_(members_.size()) {
  for (const Member& member : members_) workers_alive_ += member.role == Role::kWorker;
}

RunOutcome::TaskEnd RunOutcome::TaskEnded(size_t task, int wait_status, absl::Duration now) {
  const auto [role, index] = members_[task];
  const std::string what =
      absl::StrCat(TaskName(role, index), " ended with ", DescribeEnd(wait_status));
  const int code = ExitCodeOf(wait_status);
  if (MayReturn(task, code, now)) return {what + "; it is started again", true};
  return {EndFor(task, code, what)};
}

// A ps without a checkpoint would have lost everything.
bool RunOutcome::MayReturn(size_t task, int code, absl::Duration now) {
  const bool is_replaced = rules_.has_standby && members_[task].role == Role::kChief &&
                           code == static_cast<int>(ExitCode::kFenced);
  const bool can_return = (code >= kFirstRetryableCode && code != kToldToEnd) || is_replaced;
  if (phase_ != Phase::kRunning || !can_return) return false;
  if (members_[task].role == Role::kPs && !rules_.keeps_state) return false;
  std::deque<absl::Duration>& lately = returns_[task];
  while (!lately.empty() && now - lately.front() >= kReturnsWithin) lately.pop_front();
  if (lately.size() >= kMostReturns) return false;
  lately.push_back(now);
  return true;
}

// Of a chief that has ended with 0. A standby that finds no ps, and the last checkpoint of an
// earlier run, ends so while the first chief has yet to begin another one.
bool RunOutcome::EndsJob(size_t task) const {
  const size_t first = static_cast<size_t>(
      std::ranges::find(members_, Role::kChief, &Member::role) - members_.begin());
  return has_begun_ || task == first || !alive(first);
}

// What to tell of a task that has ended for good.
std::string RunOutcome::EndFor(size_t task, int code, const std::string& what) {
  CountOut(task);
  if (phase_ != Phase::kRunning && phase_ != Phase::kFinishing) return "";
  if (phase_ == Phase::kRunning && code == kToldToEnd) return StopFor(task);

  const Role role = members_[task].role;
  if (code == 0) {
    if (role != Role::kChief) return "";
    if (!EndsJob(task)) return what + "; the run goes on without it";
    phase_ = Phase::kFinishing;
    return "";
  }
  if (role == Role::kWorker && code >= kFirstRetryableCode) {
    if (phase_ == Phase::kFinishing) return what + " after the job was done";
    if (workers_alive_ >= rules_.workers_needed) return what + "; the run goes on without it";
    return Fail(task, code,
                absl::StrCat(what, "; ",
                             CountText(static_cast<uint64_t>(workers_alive_), "worker is left",
                                       "workers are left"),
                             ", a step needs ", rules_.workers_needed));
  }
  // One that ends by itself says why.
  const bool is_killed =
      code >= kFirstRetryableCode && code != static_cast<int>(ExitCode::kPeersLost);
  const bool has_lost_state = role == Role::kPs && is_killed && !rules_.keeps_state;
  if (!has_lost_state || phase_ == Phase::kFinishing) return Fail(task, code, what);
  return Fail(task, code,
              what +
                  "; its variables are lost and the job has no checkpoint to go back to. Remedy: "
                  "write checkpoint { folder: \"checkpoints\" every_steps: 100 } in the job file");
}

// One that was told to end (`lockstep stop`, SIGINT) tells of the whole job, but for a backup
// worker with a signal of its own.
std::string RunOutcome::StopFor(size_t task) {
  const auto [role, index] = members_[task];
  if (role != Role::kWorker || workers_alive_ < rules_.workers_needed) {
    phase_ = Phase::kStopping;
    exit_code_ = kToldToEnd;
  }
  return absl::StrCat(TaskName(role, index), " was told to end");
}

std::string RunOutcome::CannotReturn(size_t task, const absl::Status& why) {
  CountOut(task);
  return Fail(task, static_cast<int>(ExitCodeFor(why)), std::string(why.message()));
}

void RunOutcome::CountOut(size_t task) {
  ended_[task] = true;
  --alive_;
  if (members_[task].role == Role::kWorker) --workers_alive_;
}

std::string RunOutcome::Fail(size_t task, int exit_code, std::string why) {
  phase_ = Phase::kFailing;
  culprit_ = task;
  exit_code_ = exit_code;
  return why;
}

void RunOutcome::Interrupt(int signal) {
  phase_ = Phase::kInterrupted;
  culprit_.reset();
  exit_code_ = static_cast<int>(signal == SIGINT ? ExitCode::kInterrupted : ExitCode::kTerminated);
}

std::string RunOutcome::FinishingTookTooLong() {
  std::vector<std::string> left;
  for (size_t task = 0; task < members_.size(); ++task) {
    if (alive(task)) left.push_back(TaskName(members_[task].role, members_[task].index));
  }
  phase_ = Phase::kFailing;
  exit_code_ = static_cast<int>(ExitCode::kBug);
  return absl::StrCat("the job is done but still running: ", absl::StrJoin(left, ", "));
}

}  // namespace lockstep::deploy
