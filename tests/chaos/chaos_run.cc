#include "tests/chaos/chaos_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
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
constexpr char kDiskIsFull[] = "No space left on device";

absl::Duration Now() { return Clock::Real()->Monotonic(); }

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

bool ChaosRun::TendUntil(const std::function<bool()>& done, absl::Duration patience) {
  const absl::Duration deadline = Now() + patience;
  while (Now() < deadline) {
    if (!Tend()) return false;
    if (done()) return true;
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

void ChaosRun::Settle() { TendFor(kSettle); }

ChaosRun::Injected ChaosRun::Inject(const Fault& fault, ChaosTask* task) {
  Injected injected = {.outcome = {.fault = fault}, .task = task, .is_healed = !Lasts(fault.kind)};
  for (const auto& other : job_->tasks()) injected.read_to.push_back(other->LogFrom(0).size());
  injected.at = Now();
  job_->Inject(fault, task);
  return injected;
}

bool ChaosRun::HealInTime(std::vector<Injected>* round) {
  bool all = true;
  for (Injected& injected : *round) {
    if (injected.is_healed) continue;
    injected.is_healed = Now() - injected.at >= injected.outcome.fault.lasts;
    if (injected.is_healed) job_->Heal(injected.outcome.fault, injected.task);
    all = all && injected.is_healed;
  }
  return all;
}

void ChaosRun::LookForDetection(Injected* injected) {
  if (injected->outcome.detected_after != absl::InfiniteDuration()) return;
  // Of the kill that comes before a full disk, the name would tell.
  const std::string sign =
      injected->outcome.fault.kind == FaultKind::kFullDisk ? kDiskIsFull : injected->task->name();
  for (size_t i = 0; i < job_->tasks().size(); ++i) {
    const ChaosTask& other = *job_->tasks()[i];
    if (&other == injected->task) continue;
    const std::string news = other.LogFrom(injected->read_to[i]);
    if (!absl::StrContains(news, sign)) {
      // The sign may have come in part.
      if (news.size() > sign.size()) injected->read_to[i] += news.size() - sign.size();
      continue;
    }
    injected->outcome.detected_after = Now() - injected->at;
    injected->outcome.detected_by = other.name();
    return;
  }
}

bool ChaosRun::AreFullDisksMet(const std::vector<Injected>& round) const {
  return !job_->successor_saves() || std::ranges::all_of(round, [](const Injected& injected) {
    return injected.outcome.fault.kind != FaultKind::kFullDisk ||
           injected.outcome.detected_after != absl::InfiniteDuration();
  });
}

bool ChaosRun::RunRound() {
  if (!TendFor(schedule_->NextWait())) return false;
  std::vector<std::pair<Fault, ChaosTask*>> faults;
  std::vector<std::string> names;
  for (const Fault& fault : schedule_->Next()) {
    ChaosTask* task = nullptr;
    if (!TendUntil([&] { return (task = job_->TargetOf(fault)) != nullptr; }, kRecovery)) {
      report_->AddDefect("no chief commands");
      return false;
    }
    faults.emplace_back(fault, task);
    names.push_back(absl::StrCat(NameOf(fault.kind), " ", task->name(),
                                 fault.target == FaultTarget::kPair ? " with its copy" : ""));
  }

  watch_.Begin(Now());
  std::vector<Injected> round;
  for (const auto& [fault, task] : faults) round.push_back(Inject(fault, task));
  int advances_when_healed = -1;
  const bool recovers = TendUntil(
      [&] {
        for (Injected& injected : round) LookForDetection(&injected);
        if (!HealInTime(&round) || !job_->all_up() || !AreFullDisksMet(round)) return false;
        if (advances_when_healed < 0) advances_when_healed = watch_.num_advances();
        return watch_.num_advances() >= advances_when_healed + kAdvances;
      },
      kRecovery);
  const absl::Duration pause = watch_.LongestPause(Now());
  absl::Duration allowed;
  for (const auto& [fault, task] : faults) allowed += AllowedPause(fault, ChaosJob::kLease);
  for (Injected& injected : round) {
    injected.outcome.is_alone = round.size() == 1;
    injected.outcome.pause = pause;
    injected.outcome.allowed = allowed;
    report_->Add(injected.outcome);
  }
  std::string what = names[0];
  if (names.size() > 1) absl::StrAppend(&what, " and ", names[1]);
  say_(absl::StrFormat("%d: %s: %.2f s without a step", report_->num_faults(), what,
                       absl::ToDoubleSeconds(pause)));
  if (!recovers) report_->AddDefect("the job does not go on after " + what);
  return recovers;
}

}  // namespace lockstep::test
