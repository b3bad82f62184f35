#include "worker/tower/op_builder.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/model/window.h"

namespace lockstep::worker {
namespace {

using google::protobuf::RepeatedField;
using MadeOp = OpFactory::Made<Op>;

ImageShape ImageOf(const Shape& shape) { return {shape.dim(0), shape.dim(1), shape.dim(2)}; }

int64_t LastDim(const Shape& shape) { return shape.dim(shape.rank() - 1); }

Window WindowOver(const Shape& input, const RepeatedField<int64_t>& extent,
                  const RepeatedField<int64_t>& strides, Padding padding) {
  Window window;
  for (int axis : {0, 1}) {
    window.extent[axis] = extent.Get(axis);
    window.stride[axis] = strides.Get(axis);
    const WindowPlan plan =
        PlanWindow(input.dim(axis), extent.Get(axis), strides.Get(axis), padding);
    window.pad_before[axis] = plan.pad_before;
    window.pad_after[axis] = plan.pad_after;
  }
  return window;
}

// One Make function per kind of layer, with what they all need at hand.
class Builder {
 public:
  Builder(const ModelGraph& graph, const ScheduledOp& op, const OpOptions& options,
          OpFactory& factory)
      : graph_(graph),
        op_(op),
        node_(graph.nodes()[op.node]),
        options_(options),
        factory_(factory) {}

  MadeOp Build() const {
    const LayerDef& layer = node_.layer;
    switch (layer.kind_case()) {
      case LayerDef::kDense:
        return factory_.MakeDense({options_, Input().num_elements(), layer.dense().units(),
                                   !layer.dense().no_bias(), op_.relu});
      case LayerDef::kConv2D:
        return factory_.MakeConv2D({options_, ImageOf(Input()), ImageOf(node_.output),
                                    WindowOver(Input(), layer.conv2d().kernel(),
                                               layer.conv2d().strides(), layer.conv2d().padding()),
                                    !layer.conv2d().no_bias(), op_.relu});
      case LayerDef::kMaxPool:
        return MakePool(PoolKind::kMax, layer.max_pool());
      case LayerDef::kAveragePool:
        return MakePool(PoolKind::kAverage, layer.average_pool());
      case LayerDef::kRelu:
        return MakeActivation(ActivationKind::kRelu);
      case LayerDef::kTanh:
        return MakeActivation(ActivationKind::kTanh);
      case LayerDef::kSigmoid:
        return MakeActivation(ActivationKind::kSigmoid);
      case LayerDef::kBatchNorm:
        return factory_.MakeBatchNorm({options_, Input().num_elements() / LastDim(Input()),
                                       LastDim(Input()), layer.batch_norm().momentum(),
                                       layer.batch_norm().epsilon(), op_.relu});
      case LayerDef::kDropout:
        return factory_.MakeDropout(
            {options_, node_.name, layer.dropout().rate(), Input().num_elements()});
      case LayerDef::kAdd:
        return factory_.MakeAdd({options_, Input().num_elements()});
      case LayerDef::kConcatenate:
        return MakeConcatenate();
      case LayerDef::kColumns:
        return factory_.MakeColumns({options_, Input().num_elements() / LastDim(Input()),
                                     LastDim(Input()), layer.columns().first(),
                                     layer.columns().count()});
      case LayerDef::kEmbedding:
        return factory_.MakeEmbedding(
            {options_, layer.embedding().rows(), layer.embedding().dim(), Input().num_elements(),
             layer.embedding().combiner() == Embedding::SUM ? EmbeddingCombiner::kSum
                                                            : EmbeddingCombiner::kConcatenate});
      case LayerDef::kSynthetic:
        return factory_.MakeSynthetic({options_, node_.name, Input().num_elements(),
                                       absl::Microseconds(layer.synthetic().release_every_us())});
      case LayerDef::kFlatten:
      case LayerDef::kSoftmaxCrossEntropy:
      case LayerDef::kL2Loss:
      case LayerDef::kCustom:
      case LayerDef::KIND_NOT_SET:
        break;
    }
    return absl::UnimplementedError("there is no op for this kind of layer");
  }

 private:
  const Shape& Input(size_t index = 0) const {
    return graph_.nodes()[op_.input_nodes[index]].output;
  }

  MadeOp MakePool(PoolKind kind, const Pool& pool) const {
    return factory_.MakePool({options_, kind, ImageOf(Input()), ImageOf(node_.output),
                              WindowOver(Input(), pool.window(), pool.strides(), pool.padding())});
  }

  MadeOp MakeActivation(ActivationKind kind) const {
    return factory_.MakeActivation({options_, kind, Input().num_elements()});
  }

  MadeOp MakeConcatenate() const {
    ConcatenateOptions options{options_, node_.output.num_elements() / LastDim(node_.output), {}};
    for (size_t i = 0; i < op_.inputs.size(); ++i) options.channels.push_back(LastDim(Input(i)));
    return factory_.MakeConcatenate(options);
  }

  const ModelGraph& graph_;
  const ScheduledOp& op_;
  const ModelNode& node_;
  const OpOptions& options_;
  OpFactory& factory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Op>> BuildOp(const ModelGraph& graph, const Schedule& schedule,
                                            const ScheduledOp& op, OpOptions options,
                                            OpFactory& factory) {
  options.input_gradient = false;
  for (ValueId input : op.inputs) {
    options.input_gradient = options.input_gradient || schedule.wants_gradient[input];
  }
  options.variable_gradients = !graph.nodes()[op.node].layer.frozen();
  MadeOp made = Builder(graph, op, options, factory).Build();
  if (!made.ok()) {
    return Annotate(made.status(), absl::StrCat("layer \"", graph.nodes()[op.node].name, "\""));
  }
  return made;
}

absl::StatusOr<std::unique_ptr<Loss>> BuildLoss(const ModelGraph& graph, int64_t batch,
                                                OpFactory& factory) {
  return factory.MakeLoss({graph.is_classifier() ? LossKind::kSoftmaxCrossEntropy : LossKind::kL2,
                           batch, graph.num_outputs()});
}

}  // namespace lockstep::worker
