// A job of deploy/examples, made ready to run here and now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/cli/console.h"
#include "deploy/cli/local_run.h"

namespace lockstep::deploy {

struct Example {
  std::string dataset;  // digits, fashion, clicks, text or gan
  std::string examples_dir;
  std::string bin_dir;           // LocalRunOptions::bin_dir
  std::optional<uint64_t> seed;  // in place of the job's
  // The run's folder may have the checkpoints of an earlier run.
  bool may_have_run = false;
};

// Writes the job with all its output in `run_dir`, which is claimed, makes the data of which only
// the formula is shipped, and checks everything as CheckRun does.
absl::StatusOr<LocalRunOptions> PrepareExample(const Example& example, const std::string& run_dir,
                                               Console* console);

}  // namespace lockstep::deploy
