// ./lockstep chaos: real processes that are killed, stopped and cut off at random.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/config/flags.h"
#include "deploy/cli/json_output.h"
#include "tests/chaos/chaos_options.h"
#include "tests/chaos/chaos_run.h"
#include "tests/chaos/goodput.h"
#include "tests/chaos/result_checks.h"
#include "tests/chaos/usage.h"
#include "tests/support/virtual_network.h"

ABSL_FLAG(int, seconds, 60, "how long faults are injected");
ABSL_FLAG(int, faults, 0, "how many faults are injected, in place of --seconds");
ABSL_FLAG(uint64_t, seed, 1, "of the choice of faults");
ABSL_FLAG(std::string, json, "", "file for the report");
ABSL_FLAG(bool, copies, false, "the job keeps a copy of each shard (sync.ps_replicas: 1)");
ABSL_FLAG(bool, hosts, false,
          "each task on a host of its own, in a network namespace: pairs of them are cut off from "
          "each other, and hosts from all. Takes root or user namespaces");
ABSL_FLAG(bool, token, false,
          "the job has a token, and others call without it; not with --hosts, where a token would "
          "go to other machines unencrypted");
ABSL_FLAG(bool, backup, false, "one worker more than a step needs; with --ledger");
ABSL_FLAG(bool, ledger, false,
          "train the ledger, whose last values show which gradients were counted, and how often");
ABSL_FLAG(int, kill_every, 0,
          "in place of faults: goodput. The job runs for --seconds, and for as long again with one "
          "kill -9 in every so many seconds");
ABSL_FLAG(double, least_goodput, 0.95,
          "with --kill_every: the share of steps below which it fails");
ABSL_FLAG(bool, endurance, false,
          "only faults that end no process; memory, descriptors and threads must not grow in "
          "--seconds");
ABSL_FLAG(std::string, job_options, "", "further fields of the job file, as text");

namespace lockstep::test {
namespace {

constexpr absl::Duration kSleep = absl::Milliseconds(10);
// The ledger has rows for an hour of such steps.
constexpr absl::Duration kSleepOfEndurance = absl::Milliseconds(90);
constexpr char kUsage[] =
    "chaos [--seconds=N | --faults=N] [--seed=N] [--copies] [--hosts | --token] [--ledger "
    "[--backup]] [--kill_every=N [--least_goodput=X]] [--endurance] [--json=FILE] "
    "[--job_options=TEXT]";

// `bazel test` says where the programs are; others do not.
void FindPrograms() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setenv("TEST_SRCDIR", absl::StrCat(self, ".runfiles").c_str(), /*overwrite=*/0);
  setenv("TEST_WORKSPACE", "lockstep", /*overwrite=*/0);
}

void Say(const std::string& line) { std::cout << line << std::endl; }

// Injects faults until there are enough of them, or time is over. False: something is wrong.
bool InjectFaults(ChaosRun* run, const ChaosReport& report) {
  const size_t faults = absl::GetFlag(FLAGS_faults);
  const absl::Duration end =
      Clock::Real()->Monotonic() + absl::Seconds(absl::GetFlag(FLAGS_seconds));
  const auto has_enough = [&] {
    return faults > 0 ? report.num_faults() >= faults : Clock::Real()->Monotonic() >= end;
  };
  while (!has_enough()) {
    if (!run->RunRound()) return false;
  }
  return true;
}

int Main() {
  FindPrograms();
  auto json = deploy::JsonOutput::Create(absl::GetFlag(FLAGS_json));
  if (!json.ok()) return PrintFailure("chaos", json.status());
  const bool is_endurance = absl::GetFlag(FLAGS_endurance);
  const ChaosOptions options = {.has_copies = absl::GetFlag(FLAGS_copies),
                                .has_backup = absl::GetFlag(FLAGS_backup),
                                .is_ledger = absl::GetFlag(FLAGS_ledger),
                                .has_token = absl::GetFlag(FLAGS_token),
                                .has_hosts = absl::GetFlag(FLAGS_hosts),
                                .sleep = is_endurance ? kSleepOfEndurance : kSleep,
                                .more = absl::GetFlag(FLAGS_job_options)};
  if (options.has_backup && !options.is_ledger) {
    return PrintFailure("chaos", UsageError("--backup: which gradients a step counts is up to the "
                                            "machine, so no run has the bits of another one. "
                                            "Remedy: add --ledger"));
  }
  if (options.has_hosts && options.has_token) {
    return PrintFailure("chaos",
                        UsageError("--token: the job's token is not sent to other machines "
                                   "unencrypted. Remedy: leave out --hosts"));
  }
  if (options.has_hosts) {
    if (const absl::Status status = VirtualNetwork::Enter(); !status.ok()) {
      return PrintFailure("chaos", status);
    }
  }
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const int kill_every = absl::GetFlag(FLAGS_kill_every);
  ChaosJob job(options);
  std::vector<Fault> faults = options.has_hosts ? FaultsOfHosts(options.has_copies) : AllFaults();
  if (options.has_token) AddFaultsOfTokens(&faults);
  if (is_endurance) faults = WithoutEnds(std::move(faults));
  Schedule schedule(seed, ChaosJob::kPs, options.num_workers(), faults);
  ChaosReport report(std::move(faults));
  ChaosRun run(&job, &schedule, &report, &Say);
  std::optional<Goodput> goodput;
  UsageWatch usage(absl::Seconds(absl::GetFlag(FLAGS_seconds)));
  bool is_well = run.WaitForStart();
  if (is_well && kill_every > 0) {
    is_well = MeasureGoodput(&job, &run,
                             {.time = absl::Seconds(absl::GetFlag(FLAGS_seconds)),
                              .period = absl::Seconds(kill_every),
                              .seed = seed},
                             &Say, &goodput.emplace());
  } else if (is_well) {
    if (is_endurance) run.WatchUsage(&usage);
    is_well = InjectFaults(&run, report);
  }
  int64_t steps = 0;
  if (is_well) {
    run.AwaitStandby();
    for (const std::string& what : job.Finish()) report.AddDefect(what);
    steps = CheckResult(job, options, &report);
  }
  const double least_goodput = absl::GetFlag(FLAGS_least_goodput);
  if (is_well && goodput.has_value() && goodput->share() < least_goodput) {
    report.AddDefect(
        absl::StrCat("goodput ", goodput->share(), ", expected at least ", least_goodput));
  }
  std::cout << (goodput.has_value() ? goodput->Line() : report.Table());
  if (is_endurance) {
    std::cout << TableOf(usage);
    for (const std::string& what : usage.Growth()) report.AddDefect(what);
  }
  if (!report.defects().empty()) std::cout << job.Logs();
  for (const std::string& what : report.defects()) std::cout << "FAILED: " << what << "\n";
  if (report.defects().empty()) {
    std::cout << report.num_faults() + (goodput.has_value() ? goodput->kills : 0) << " faults in "
              << steps << " steps; every exit code is true, and the model is "
              << (options.is_ledger ? "what the gradients of its steps make, each counted once"
                                    : "that of the undisturbed run")
              << "\n";
  }
  const absl::Status status =
      json->Write(goodput.has_value() ? goodput->Json() : report.Json(seed, steps));
  if (!status.ok()) return PrintFailure("chaos", status);
  return is_well && report.defects().empty() ? 0 : 1;
}

}  // namespace
}  // namespace lockstep::test

int main(int argc, char** argv) {
  if (const auto flags = lockstep::HandleFlags("chaos", lockstep::test::kUsage, argc, argv);
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  return lockstep::test::Main();
}
