#include "tests/reference/model.h"

#include "common/base/check.h"
#include "common/model/loss_rules.h"
#include "tests/reference/layers.h"

namespace lockstep::reference {
namespace {

Sliding SlidingOf(Padding padding, int64_t input, int64_t window, int64_t stride) {
  return padding == SAME ? Sliding::Same(input, window, stride)
                         : Sliding::Valid(input, window, stride);
}

Array Apply(const ModelNode& node, const std::vector<Array>& inputs,
            const std::vector<Array>& variables, bool training) {
  const LayerDef& layer = node.layer;
  const Array& x = inputs[0];
  const auto slide = [&x](const auto& window, const auto& def, int axis) {
    return SlidingOf(def.padding(), x.dims[axis + 1], window.Get(axis), def.strides(axis));
  };
  const auto bias = [&] { return variables.size() == 2 ? variables[1] : Array(); };
  switch (layer.kind_case()) {
    case LayerDef::kDense:
      return Dense(x, variables[0], bias());
    case LayerDef::kConv2D: {
      const lockstep::Conv2D& def = layer.conv2d();
      return Conv2D(x, variables[0], bias(), slide(def.kernel(), def, 0),
                    slide(def.kernel(), def, 1));
    }
    case LayerDef::kMaxPool: {
      const Pool& def = layer.max_pool();
      return MaxPool(x, slide(def.window(), def, 0), slide(def.window(), def, 1));
    }
    case LayerDef::kAveragePool: {
      const Pool& def = layer.average_pool();
      return AveragePool(x, slide(def.window(), def, 0), slide(def.window(), def, 1));
    }
    case LayerDef::kRelu:
      return Relu(x);
    case LayerDef::kTanh:
      return Tanh(x);
    case LayerDef::kSigmoid:
      return Sigmoid(x);
    case LayerDef::kBatchNorm: {
      const Moments moments =
          training && !layer.frozen() ? MomentsOf(x) : Moments{variables[2], variables[3]};
      return Normalise(x, moments, variables[0], variables[1], layer.batch_norm().epsilon());
    }
    case LayerDef::kFlatten: {
      Array flat = x;
      flat.dims = {x.dims[0], x.size() / x.dims[0]};
      return flat;
    }
    case LayerDef::kAdd:
      return Add(inputs);
    case LayerDef::kConcatenate:
      return Concatenate(inputs);
    case LayerDef::kDropout:
    case LayerDef::kSynthetic:
      return x;
    case LayerDef::kColumns:
      return Columns(x, layer.columns().first(), layer.columns().count());
    case LayerDef::kEmbedding: {
      const auto combiner = layer.embedding().combiner();
      Array rows = Embedding(x, variables[0], combiner == lockstep::Embedding::SUM);
      if (combiner == lockstep::Embedding::SEQUENCE) {
        rows.dims = {x.dims[0], x.dims[1], layer.embedding().dim()};
      }
      return rows;
    }
    case LayerDef::kLstm:
      return Lstm(inputs, variables, layer.lstm().return_sequences());
    case LayerDef::kGru:
      return Gru(inputs, variables, layer.gru().return_sequences());
    case LayerDef::kSoftmaxCrossEntropy:
    case LayerDef::kL2Loss:
    case LayerDef::kSigmoidCrossEntropy:
    case LayerDef::kNoise:
    case LayerDef::kCustom:
    case LayerDef::KIND_NOT_SET:
      break;
  }
  LOCKSTEP_CHECK(!"a layer with an output");
  return {};
}

// By node; nothing for a loss and what no loss depends on.
std::vector<Array> ValuesOf(const ModelGraph& graph, const std::vector<Array>& variables,
                            const worker::Batch& batch, bool training) {
  std::vector<Array> values = {ToArray(batch.features.view())};
  for (const Tensor& state : batch.states) values.push_back(ToArray(state.view()));
  for (size_t i = values.size(); i < graph.nodes().size(); ++i) {
    const ModelNode& node = graph.nodes()[i];
    values.emplace_back();
    if (IsLoss(node.layer) || !graph.IsReached(static_cast<int>(i))) continue;
    std::vector<Array> inputs;
    for (int input : node.inputs) inputs.push_back(values[input]);
    std::vector<Array> own;
    for (int variable : node.variables) own.push_back(variables[variable]);
    values.back() = Apply(node, inputs, own, training);
  }
  return values;
}

double LossOf(const LayerDef& layer, const Array& scores, const worker::Batch& batch) {
  if (layer.has_softmax_cross_entropy()) {
    const std::span<const int32_t> labels = batch.labels.as<int32_t>();
    return SoftmaxCrossEntropy(scores, std::vector<int32_t>(labels.begin(), labels.end()));
  }
  if (layer.has_l2_loss()) return L2Loss(scores, ToArray(batch.labels.view()));
  if (!layer.sigmoid_cross_entropy().has_target()) {
    return SigmoidCrossEntropy(scores, ToArray(batch.labels.view()));
  }
  Array targets(scores.dims);
  for (double& target : targets.values) target = layer.sigmoid_cross_entropy().target();
  return SigmoidCrossEntropy(scores, targets);
}

}  // namespace

Array Scores(const ModelGraph& graph, const std::vector<Array>& variables,
             const worker::Batch& batch, bool training) {
  return ValuesOf(graph, variables, batch, training)[graph.nodes()[graph.loss_node()].inputs[0]];
}

double MeanLoss(const ModelGraph& graph, const std::vector<Array>& variables,
                const worker::Batch& batch, bool training) {
  const std::vector<Array> values = ValuesOf(graph, variables, batch, training);
  double loss = 0;
  for (const int node : graph.loss_nodes()) {
    const ModelNode& of = graph.nodes()[node];
    loss += LossOf(of.layer, values[of.inputs[0]], batch);
  }
  return loss;
}

}  // namespace lockstep::reference
