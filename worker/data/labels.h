// Labels as the loss takes them.
#pragma once

#include "absl/status/statusor.h"
#include "common/dataset/example_table.h"
#include "common/tensor/tensor.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// int32 [n], or for labels of time steps [n, time], for a classifier; float32 [n, num_outputs] for
// a regression. `num_classes` as in the job: 0 means all outputs. INVALID_ARGUMENT (file, record or
// line, label, allowed) for a label that is out of range or no whole number, and where the labels'
// shape does not fit the model.
absl::StatusOr<Tensor> MakeLabels(const ExampleTable& table, const ExampleSpec& spec,
                                  int64_t num_classes);

}  // namespace lockstep::worker
