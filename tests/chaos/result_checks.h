// CheckResult checks the result of a job under chaos.
#pragma once

#include <cstdint>

#include "tests/chaos/chaos_job.h"
#include "tests/chaos/chaos_options.h"
#include "tests/chaos/report.h"

namespace lockstep::test {

// Judges the newest checkpoint of a job that has ended, adds its defects to `report`, and returns
// its step. For a ledger's job, checks the ledger. Otherwise makes an undisturbed run of as many
// steps, whose checkpoint must be equal to the bit.
int64_t CheckResult(const ChaosJob& job, const ChaosOptions& options, ChaosReport* report);

}  // namespace lockstep::test
