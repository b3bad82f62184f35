// What a job under chaos must have come to.
#pragma once

#include <cstdint>

#include "tests/chaos/chaos_job.h"
#include "tests/chaos/chaos_options.h"
#include "tests/chaos/report.h"

namespace lockstep::test {

// Judges the newest checkpoint of a job that has ended, adds what is wrong to `report`, and returns
// its step. Of a ledger: the ledger. Otherwise it is, to the bit, that of a run of as many steps
// that nothing disturbs, which is made here.
int64_t CheckResult(const ChaosJob& job, const ChaosOptions& options, ChaosReport* report);

}  // namespace lockstep::test
