#include "tests/chaos/chaos_run.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(5);
constexpr absl::Duration kStart = absl::Seconds(60);
constexpr absl::Duration kUsagePeriod = absl::Seconds(1);
constexpr absl::Duration kSettle = absl::Seconds(1);
// A job that has made no step for so long after a fault hangs.
constexpr absl::Duration kRecovery = absl::Seconds(45);
// Answers with new steps after all is healed: more than a step that was under way.
constexpr int kAdvances = 5;

absl::Duration Now() { return Clock::Real()->Monotonic(); }

// "one way cut worker 0 -> ps 1".
std::string Describe(const Fault& fault, const FaultTasks& tasks) {
  if (fault.target == FaultTarget::kAll) {
    return absl::StrCat(NameOf(fault.kind), " ", NameOf(fault.target));
  }
  const std::string what = absl::StrCat(NameOf(fault.kind), " ", NameOf(tasks.task));
  if (fault.target == FaultTarget::kPair) return what + " with its copy";
  return tasks.peer ? absl::StrCat(what, ArrowOf(fault.kind), NameOf(*tasks.peer)) : what;
}

}  // namespace

ChaosRun::ChaosRun(ChaosJob* job, Schedule* schedule, ChaosReport* report,
                   std::function<void(const std::string&)> say)
    : job_(job), schedule_(schedule), report_(report), say_(std::move(say)) {}

bool ChaosRun::Tend() {
  const std::vector<std::string> wrong = job_->Tend(&watch_);
  for (const std::string& what : wrong) report_->AddDefect(what);
  if (usage_ != nullptr) ReadUsage();
  return wrong.empty();
}

void ChaosRun::WatchUsage(UsageWatch* usage) {
  usage_ = usage;
  usage_begin_ = next_usage_ = Now();
}

void ChaosRun::ReadUsage() {
  const absl::Duration now = Now();
  if (now < next_usage_) return;
  next_usage_ = now + kUsagePeriod;
  for (const auto& task : job_->tasks()) {
    if (const auto usage = UsageOf(task->pid()))
      usage_->Add(task->name(), now - usage_begin_, *usage);
  }
}

bool ChaosRun::TendUntil(const std::function<bool()>& done, absl::Duration patience,
                         const std::function<int()>& parts) {
  absl::Duration deadline = Now() + patience;
  int part = parts();
  while (Now() < deadline) {
    if (!Tend()) return false;
    if (done()) return true;
    if (std::exchange(part, parts()) != part) deadline = Now() + patience;
    absl::SleepFor(kPoll);
  }
  return false;
}

bool ChaosRun::WaitForStart() {
  watch_.Begin(Now());
  if (TendUntil([&] { return watch_.num_advances() >= kAdvances && job_->has_checkpoint(); },
                kStart)) {
    return true;
  }
  report_->AddDefect("the job does not start");
  return false;
}

bool ChaosRun::TendFor(absl::Duration time) {
  const absl::Duration until = Now() + time;
  return TendUntil([&] { return Now() >= until; }, time + kRecovery);
}

void ChaosRun::AwaitStandby() { TendFor(kSettle); }

ChaosRun::Injected ChaosRun::Inject(const Fault& fault, const FaultTasks& tasks) {
  Injected injected = {.outcome = {.fault = fault},
                       .tasks = tasks,
                       .detection = Detection(job_->tasks(), fault, tasks),
                       .at = Now()};
  injected.fault = job_->Inject(fault, tasks);
  return injected;
}

bool ChaosRun::AdvanceFaults(std::vector<Injected>* round) {
  bool all = true;
  for (Injected& injected : *round) {
    if (injected.is_healed) continue;
    const bool has_hit = injected.fault->Advance(watch_.num_advances());
    if (const std::optional<TaskId> hit = injected.fault->hit(); has_hit && hit.has_value()) {
      // What was logged before tells nothing of it.
      injected.tasks.task = *hit;
      injected.detection = Detection(job_->tasks(), injected.outcome.fault, injected.tasks);
    }
    injected.is_healed = has_hit && Now() - injected.at >= injected.outcome.fault.lasts;
    if (injected.is_healed) injected.fault->Heal();
    all = all && injected.is_healed;
  }
  return all;
}

bool ChaosRun::AreFullDisksMet(const std::vector<Injected>& round) const {
  return !job_->successor_saves() || std::ranges::all_of(round, [](const Injected& injected) {
    return injected.outcome.fault.kind != FaultKind::kFullDisk ||
           injected.detection.after() != absl::InfiniteDuration();
  });
}

bool ChaosRun::RunRound() {
  if (!TendFor(schedule_->NextWait())) return false;
  std::vector<std::pair<Fault, FaultTasks>> faults;
  for (const Fault& fault : schedule_->Next()) {
    std::optional<FaultTasks> tasks;
    if (!TendUntil([&] { return (tasks = job_->TasksOf(fault)).has_value(); }, kRecovery)) {
      report_->AddDefect("no chief commands");
      return false;
    }
    faults.emplace_back(fault, *tasks);
  }

  watch_.Begin(Now());
  std::vector<Injected> round;
  for (const auto& [fault, tasks] : faults) round.push_back(Inject(fault, tasks));
  int advances_when_healed = -1;
  const auto parts = [&round] {
    int sum = 0;
    for (const Injected& injected : round) sum += injected.fault->part();
    return sum;
  };
  const bool recovers = TendUntil(
      [&] {
        for (Injected& injected : round) {
          // Of a cut that is healed a name says something else.
          if (!injected.is_healed || !injected.tasks.peer.has_value())
            injected.detection.ReadLogs();
        }
        if (!AdvanceFaults(&round) || !job_->all_up() || !AreFullDisksMet(round)) return false;
        if (advances_when_healed < 0) advances_when_healed = watch_.num_advances();
        return watch_.num_advances() >= advances_when_healed + kAdvances;
      },
      kRecovery, parts);
  const absl::Duration pause = watch_.LongestPause(Now());
  absl::Duration allowed;
  for (const auto& [fault, tasks] : faults) allowed += AllowedPause(fault, ChaosJob::kLease);
  for (Injected& injected : round) {
    injected.outcome.is_alone = round.size() == 1;
    injected.outcome.detected_after = injected.detection.after();
    injected.outcome.detected_by = injected.detection.by();
    injected.outcome.is_to_be_named_by_both =
        IsToBeNamedByBoth(injected.outcome.fault, ChaosJob::kLease);
    injected.outcome.detected_by_both_after = injected.detection.after_by_both();
    injected.outcome.pause = pause;
    injected.outcome.allowed = allowed;
    report_->Add(injected.outcome);
  }
  std::string what = Describe(round[0].outcome.fault, round[0].tasks);
  if (round.size() > 1) {
    absl::StrAppend(&what, " and ", Describe(round[1].outcome.fault, round[1].tasks));
  }
  say_(absl::StrFormat("%d: %s: %.2f s without a step", report_->num_faults(), what,
                       absl::ToDoubleSeconds(pause)));
  for (const Injected& injected : round) {
    const std::string defect = injected.fault->defect();
    if (!defect.empty()) report_->AddDefect(absl::StrCat(what, ": ", defect));
  }
  if (!recovers) report_->AddDefect("the job does not go on after " + what);
  return recovers;
}

}  // namespace lockstep::test
