// Checks the inputs of recurrent layers and infers their outputs.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/model/inferred_layer.h"
#include "common/tensor/shape.h"
#include "proto/model.pb.h"

namespace lockstep {

// As InferLayer. `inputs`: the sequence, then all initial states or none.
absl::StatusOr<InferredLayer> InferLstm(Lstm& def, absl::Span<const Shape> inputs);
absl::StatusOr<InferredLayer> InferGru(Gru& def, absl::Span<const Shape> inputs);

}  // namespace lockstep
