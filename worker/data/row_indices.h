// Features that are row indices into tables.
#pragma once

#include "absl/status/status.h"
#include "common/dataset/example_table.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// Whether they are what the model expects, as float32, which is what it will see. INVALID_ARGUMENT
// (file, record or line, column, value, allowed) for the first that is no whole number or out of
// range. The examples fit the model's input.
absl::Status CheckRowIndices(const ExampleTable& table, const ExampleSpec& spec);

}  // namespace lockstep::worker
