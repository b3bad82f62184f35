// The outputs of a model as files: a picture, or data for another model.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/image/image_grid.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"

namespace lockstep::worker {

// The shape of one example's outputs. Where they are as many numbers as the model's input, its
// shape; else that of the layer that puts them out.
Shape OutputShapeOf(const ModelGraph& graph);

// A grid of all outputs as images, 0 black and 1 white: a PNG file. `outputs`: one example after
// the other, of this shape. INVALID_ARGUMENT for a shape that is no image; errors of writing.
absl::Status WritePng(const std::string& path, const Shape& shape, absl::Span<const float> outputs);

// An IDX file of float32 in the units of the job's data: each x has (x - offset) * scale = output.
// A model of like data reads it as examples.
absl::Status WriteExamples(const std::string& path, const Shape& shape, const DataDef& data,
                           absl::Span<const float> outputs);

}  // namespace lockstep::worker
