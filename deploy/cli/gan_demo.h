// The end of `lockstep demo --dataset gan`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "deploy/cli/console.h"
#include "deploy/cli/example.h"
#include "deploy/cli/local_run.h"
#include "deploy/cli/summary.h"

namespace lockstep::deploy {

struct GanDemoResult {
  int exit_code = 0;
  std::string json;  // the job's summary with what was generated; of a demo that is done
};

// After the job of `options`, whose summary this is: writes the images, trains the classifier of
// the example `digits` in a folder of its own, and tells what that makes of them.
absl::StatusOr<GanDemoResult> ShowGenerated(const LocalRunOptions& options, const Summary& summary,
                                            const Example& gan, Console* console);

}  // namespace lockstep::deploy
