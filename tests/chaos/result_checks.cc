#include "tests/chaos/result_checks.h"

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/chaos/ledger.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

absl::Status CheckLedger(const std::string& folder, const ChaosOptions& options, int64_t steps,
                         ChaosReport* report) {
  const Ledger ledger(options.num_workers(), options.required());
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  for (const char* table : Ledger::kTables) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor values, reader.Read(table));
    for (const std::string& what : ledger.Check(table, values.as<float>(), steps)) {
      report->AddDefect(what);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckBits(const std::string& folder, const ChaosOptions& options, int64_t steps) {
  Cluster calm(ChaosJob::kPs, options.num_workers());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string undisturbed,
                            ChaosJob::RunCalm(&calm, options, steps));
  if (TensorsOf(undisturbed) == TensorsOf(folder)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("the checkpoint of step ", steps, " is not that of the undisturbed run"));
}

}  // namespace

int64_t CheckResult(const ChaosJob& job, const ChaosOptions& options, ChaosReport* report) {
  const auto steps = job.SavedStep();
  if (!steps.ok()) {
    report->AddDefect(absl::StrCat("no checkpoint is left: ", steps.status().ToString()));
    return 0;
  }
  const std::string folder = job.SavedFolder(*steps);
  const absl::Status status = options.is_ledger ? CheckLedger(folder, options, *steps, report)
                                                : CheckBits(folder, options, *steps);
  if (!status.ok()) report->AddDefect(std::string(status.message()));
  return *steps;
}

}  // namespace lockstep::test
