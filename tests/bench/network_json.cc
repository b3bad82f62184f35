#include "tests/bench/network_json.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/window.h"

namespace lockstep::bench {
namespace {

using nlohmann::json;

json Pair(const google::protobuf::RepeatedField<int64_t>& values) {
  return {values.Get(0), values.Get(1)};
}

// Peers pad their pools differently, so a pool without padding is told as such.
absl::string_view PoolPadding(const Pool& pool, const Shape& input) {
  for (int axis : {0, 1}) {
    const WindowPlan plan =
        PlanWindow(input.dim(axis), pool.window(axis), pool.strides(axis), pool.padding());
    if (plan.pad_before != 0 || plan.pad_after != 0) return "SAME";
  }
  return "VALID";
}

json PoolJson(absl::string_view kind, const Pool& pool, const Shape& input) {
  return json{{"kind", std::string(kind)},
              {"window", Pair(pool.window())},
              {"strides", Pair(pool.strides())},
              {"padding", std::string(PoolPadding(pool, input))}};
}

json EmbeddingJson(const Embedding& embedding) {
  return json{{"kind", "embedding"},
              {"rows", embedding.rows()},
              {"dim", embedding.dim()},
              {"sum", embedding.combiner() == Embedding::SUM}};
}

absl::StatusOr<json> LayerJson(const ModelNode& node, const Shape& input) {
  const LayerDef& layer = node.layer;
  if (layer.has_conv2d()) {
    return json{{"kind", "conv2d"},
                {"channels", input.dim(2)},
                {"filters", layer.conv2d().filters()},
                {"kernel", Pair(layer.conv2d().kernel())},
                {"strides", Pair(layer.conv2d().strides())},
                {"bias", !layer.conv2d().no_bias()},
                {"padding", Padding_Name(layer.conv2d().padding())}};
  }
  if (layer.has_max_pool()) return PoolJson("max_pool", layer.max_pool(), input);
  if (layer.has_average_pool()) return PoolJson("average_pool", layer.average_pool(), input);
  if (layer.has_batch_norm()) {
    return json{{"kind", "batch_norm"},
                {"channels", input.dim(input.rank() - 1)},
                {"epsilon", layer.batch_norm().epsilon()}};
  }
  if (layer.has_embedding()) return EmbeddingJson(layer.embedding());
  if (layer.has_columns()) {
    return json{{"kind", "columns"},
                {"first", layer.columns().first()},
                {"count", layer.columns().count()}};
  }
  if (layer.has_add()) return json{{"kind", "add"}};
  if (layer.has_concatenate()) return json{{"kind", "concatenate"}};
  if (layer.has_dense()) {
    return json{{"kind", "dense"}, {"columns", input.dim(0)}, {"units", layer.dense().units()}};
  }
  if (layer.has_dropout()) return json{{"kind", "dropout"}, {"rate", layer.dropout().rate()}};
  if (layer.has_relu()) return json{{"kind", "relu"}};
  if (layer.has_tanh()) return json{{"kind", "tanh"}};
  if (layer.has_sigmoid()) return json{{"kind", "sigmoid"}};
  if (layer.has_flatten()) return json{{"kind", "flatten"}};
  return absl::UnimplementedError(
      absl::StrCat("layer \"", node.name, "\": peers are not told of this kind"));
}

}  // namespace

absl::StatusOr<json> NetworkJson(const ModelGraph& graph) {
  json layers = json::array();
  for (int i = 1; i < graph.loss_node(); ++i) {
    const ModelNode& node = graph.nodes()[i];
    LOCKSTEP_ASSIGN_OR_RETURN(json layer, LayerJson(node, graph.nodes()[node.inputs[0]].output));
    layer["inputs"] = node.inputs;
    layers.push_back(std::move(layer));
  }
  const absl::Span<const int64_t> input = graph.input_shape().dims();
  return json{{"input_shape", std::vector<int64_t>(input.begin(), input.end())},
              {"classes", graph.num_outputs()},
              {"layers", std::move(layers)}};
}

}  // namespace lockstep::bench
