#include "worker/evaluate/output_files.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/write_idx.h"
#include "common/fs/atomic_file.h"
#include "common/image/png.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<TileShape> TileOf(const Shape& shape) {
  const bool is_grey = shape.rank() == 2 || (shape.rank() == 3 && shape.dim(2) == 1);
  const bool is_rgb = shape.rank() == 3 && shape.dim(2) == 3;
  if (is_grey || is_rgb) return TileShape{shape.dim(0), shape.dim(1), is_rgb ? 3 : 1};
  return absl::InvalidArgumentError(absl::StrCat(
      "--png: expected outputs of the shape [height,width], with 1 or 3 channels, or as many "
      "numbers as such an input has, got ",
      shape.ToString(), ". Remedy: --layer=NAME of a layer that puts out images"));
}

}  // namespace

Shape OutputShapeOf(const ModelGraph& graph) {
  int node = graph.nodes()[graph.loss_node()].inputs[0];
  while (graph.nodes()[node].layer.has_flatten()) node = graph.nodes()[node].inputs[0];
  const Shape& own = graph.nodes()[node].output;
  return own.num_elements() == graph.input_shape().num_elements() ? graph.input_shape() : own;
}

absl::Status WritePng(const std::string& path, const Shape& shape,
                      absl::Span<const float> outputs) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TileShape tile, TileOf(shape));
  return WriteFileAtomically(path, EncodePng(MakeGrid(outputs, tile)));
}

absl::Status WriteExamples(const std::string& path, const Shape& shape, const DataDef& data,
                           absl::Span<const float> outputs) {
  const double scale = data.scale() == 0 ? 1 : data.scale();
  std::vector<float> values;
  values.reserve(outputs.size());
  for (const float output : outputs) {
    values.push_back(static_cast<float>(output / scale + data.offset()));
  }
  return WriteIdx(path, shape, values);
}

}  // namespace lockstep::worker
