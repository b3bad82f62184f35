// ./lockstep chaos: real processes that are killed, stopped and cut off at random.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/config/flags.h"
#include "deploy/cli/json_output.h"
#include "tests/chaos/chaos_run.h"
#include "tests/integration/training_run.h"

ABSL_FLAG(int, seconds, 60, "how long faults are injected");
ABSL_FLAG(int, faults, 0, "how many faults are injected, in place of --seconds");
ABSL_FLAG(uint64_t, seed, 1, "of the choice of faults");
ABSL_FLAG(std::string, json, "", "file for the report");
ABSL_FLAG(std::string, job_options, "", "further fields of the job file, as text");

namespace lockstep::test {
namespace {

constexpr char kUsage[] =
    "chaos [--seconds=N | --faults=N] [--seed=N] [--json=FILE] [--job_options=TEXT]";

// `bazel test` says where the programs are; others do not.
void FindPrograms() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setenv("TEST_SRCDIR", absl::StrCat(self, ".runfiles").c_str(), /*overwrite=*/0);
  setenv("TEST_WORKSPACE", "lockstep", /*overwrite=*/0);
}

// Compares the newest checkpoint with that of a run of as many steps that nothing disturbs.
int64_t CheckBits(const ChaosJob& job, ChaosReport* report) {
  const auto step = job.SavedStep();
  if (!step.ok()) {
    report->AddDefect(absl::StrCat("no checkpoint is left: ", step.status().ToString()));
    return 0;
  }
  Cluster calm(ChaosJob::kPs, ChaosJob::kWorkers);
  const auto folder = ChaosJob::RunCalm(&calm, absl::GetFlag(FLAGS_job_options), *step);
  if (!folder.ok()) {
    report->AddDefect(std::string(folder.status().message()));
  } else if (TensorsOf(*folder) != TensorsOf(job.SavedFolder(*step))) {
    report->AddDefect(
        absl::StrCat("the checkpoint of step ", *step, " is not that of the undisturbed run"));
  }
  return *step;
}

int Main() {
  FindPrograms();
  auto json = deploy::JsonOutput::Create(absl::GetFlag(FLAGS_json));
  if (!json.ok()) return PrintFailure("chaos", json.status());
  const uint64_t seed = absl::GetFlag(FLAGS_seed);
  const size_t faults = absl::GetFlag(FLAGS_faults);
  const absl::Duration end =
      Clock::Real()->Monotonic() + absl::Seconds(absl::GetFlag(FLAGS_seconds));
  ChaosJob job(absl::GetFlag(FLAGS_job_options));
  Schedule schedule(seed, ChaosJob::kPs, ChaosJob::kWorkers);
  ChaosReport report;
  ChaosRun run(&job, &schedule, &report,
               [](const std::string& line) { std::cout << line << std::endl; });
  bool is_well = run.WaitForStart();
  while (is_well &&
         (faults > 0 ? report.num_faults() < faults : Clock::Real()->Monotonic() < end)) {
    is_well = run.RunRound();
  }
  int64_t steps = 0;
  if (is_well) {
    run.Settle();
    for (const std::string& what : job.Finish()) report.AddDefect(what);
    steps = CheckBits(job, &report);
  }
  std::cout << report.Table();
  if (!report.defects().empty()) std::cout << job.Logs();
  for (const std::string& what : report.defects()) std::cout << "FAILED: " << what << "\n";
  if (report.defects().empty()) {
    std::cout << report.num_faults() << " faults in " << steps
              << " steps; every exit code is true, and the model is that of the undisturbed run\n";
  }
  if (const absl::Status status = json->Write(report.Json(seed, steps)); !status.ok()) {
    return PrintFailure("chaos", status);
  }
  return report.defects().empty() ? 0 : 1;
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
