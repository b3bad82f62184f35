#include "worker/tower/op_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/model/window.h"
#include "worker/ops/activation.h"
#include "worker/ops/add.h"
#include "worker/ops/batch_norm.h"
#include "worker/ops/cast.h"
#include "worker/ops/columns.h"
#include "worker/ops/concatenate.h"
#include "worker/ops/conv2d.h"
#include "worker/ops/custom.h"
#include "worker/ops/dense.h"
#include "worker/ops/dropout.h"
#include "worker/ops/embedding.h"
#include "worker/ops/gru.h"
#include "worker/ops/lstm.h"
#include "worker/ops/noise.h"
#include "worker/ops/pool.h"
#include "worker/ops/synthetic.h"

namespace lockstep::worker {
namespace {

using google::protobuf::RepeatedField;
using MadeOp = OpTable::MadeOr<Op>;

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
  // `type`: of the output.
  Builder(const ModelGraph& graph, const ScheduledOp& op, DType type, const OpOptions& options,
          const OpTable& ops, OpContext* context)
      : graph_(graph),
        op_(op),
        node_(graph.nodes()[op.node]),
        type_(type),
        options_(options),
        ops_(ops),
        context_(context) {}

  MadeOp Build() const {
    const LayerDef& layer = node_.layer;
    if (op_.is_cast) return Make(CastOptions{options_, type_, Input().num_elements()});
    switch (layer.kind_case()) {
      case LayerDef::kDense:
        return MakeDense();
      case LayerDef::kConv2D:
        return Make(Conv2DOptions{options_, ImageOf(Input()), ImageOf(node_.output),
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
        return Make(BatchNormOptions{options_, Input().num_elements() / LastDim(Input()),
                                     LastDim(Input()), layer.batch_norm().momentum(),
                                     layer.batch_norm().epsilon(), op_.relu, layer.frozen()});
      case LayerDef::kDropout:
        return Make(
            DropoutOptions{options_, node_.name, layer.dropout().rate(), Input().num_elements()});
      case LayerDef::kAdd:
        return Make(AddOptions{options_, Input().num_elements()});
      case LayerDef::kConcatenate:
        return MakeConcatenate();
      case LayerDef::kColumns:
        return Make(ColumnsOptions{options_, Input().num_elements() / LastDim(Input()),
                                   LastDim(Input()), layer.columns().first(),
                                   layer.columns().count()});
      case LayerDef::kEmbedding:
        return Make(EmbeddingOptions{
            options_, layer.embedding().rows(), layer.embedding().dim(), Input().num_elements(),
            layer.embedding().combiner() == Embedding::SUM ? EmbeddingCombiner::kSum
                                                           : EmbeddingCombiner::kConcatenate});
      case LayerDef::kLstm:
        return MakeRecurrent<LstmOptions>(layer.lstm());
      case LayerDef::kGru:
        return MakeRecurrent<GruOptions>(layer.gru());
      case LayerDef::kSynthetic:
        return Make(SyntheticOptions{options_, node_.name, Input().num_elements(),
                                     absl::Microseconds(layer.synthetic().release_every_us())});
      case LayerDef::kCustom:
        return MakeCustom();
      case LayerDef::kNoise:
        return Make(NoiseOptions{options_, node_.name, node_.output.num_elements()});
      case LayerDef::kFlatten:
      case LayerDef::kSoftmaxCrossEntropy:
      case LayerDef::kL2Loss:
      case LayerDef::kSigmoidCrossEntropy:
      case LayerDef::KIND_NOT_SET:
        break;
    }
    return absl::UnimplementedError("there is no op for this kind of layer");
  }

 private:
  template <typename Options>
  MadeOp Make(const Options& options) const {
    return ops_.Make(context_, options);
  }

  const Shape& Input(size_t index = 0) const {
    return graph_.nodes()[op_.input_nodes[index]].output;
  }

  // The steps of a sequence are rows of the batch.
  MadeOp MakeDense() const {
    const Dense& dense = node_.layer.dense();
    DenseOptions options{options_, LastDim(Input()), dense.units(), !dense.no_bias(), op_.relu};
    options.batch *= Input().num_elements() / LastDim(Input());
    return Make(options);
  }

  template <typename Options, typename Def>
  MadeOp MakeRecurrent(const Def& def) const {
    return Make(Options{{options_, Input().dim(0), Input().dim(1), def.units(), !def.no_bias(),
                         def.return_sequences(), op_.inputs.size() > 1}});
  }

  MadeOp MakePool(PoolKind kind, const Pool& pool) const {
    return Make(PoolOptions{options_, kind, ImageOf(Input()), ImageOf(node_.output),
                            WindowOver(Input(), pool.window(), pool.strides(), pool.padding())});
  }

  MadeOp MakeActivation(ActivationKind kind) const {
    return Make(ActivationOptions{options_, kind, Input().num_elements()});
  }

  MadeOp MakeConcatenate() const {
    ConcatenateOptions options{options_, node_.output.num_elements() / LastDim(node_.output), {}};
    for (size_t i = 0; i < op_.inputs.size(); ++i) options.channels.push_back(LastDim(Input(i)));
    return Make(options);
  }

  MadeOp MakeCustom() const {
    CustomOptions options{options_, node_.layer.custom(), node_.name, {}, node_.output};
    for (size_t i = 0; i < op_.inputs.size(); ++i) options.inputs.push_back(Input(i));
    return Make(options);
  }

  const ModelGraph& graph_;
  const ScheduledOp& op_;
  const ModelNode& node_;
  const DType type_;
  const OpOptions& options_;
  const OpTable& ops_;
  OpContext* const context_;
};

// With the layer in an error.
template <typename T>
OpTable::MadeOr<T> MadeForLayer(const ModelGraph& graph, int node, OpTable::MadeOr<T> made) {
  if (made.ok()) return made;
  absl::Status failed =
      Annotate(made.status(), absl::StrCat("layer \"", graph.nodes()[node].name, "\""));
  // The model is not for this device.
  if (absl::IsUnimplemented(failed)) {
    failed = WithExitCode(std::move(failed), ExitCode::kBadConfiguration);
  }
  return failed;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Op>> BuildOp(const ModelGraph& graph, const TowerSchedule& schedule,
                                            const ScheduledOp& op, OpOptions options,
                                            const OpTable& ops, OpContext* context) {
  options.input_gradient = false;
  for (ValueId input : op.inputs) {
    options.input_gradient = options.input_gradient || schedule.wants_gradient[input];
  }
  options.variable_gradients = std::ranges::any_of(
      op.variables, [&](int variable) { return !graph.variables()[variable].frozen; });
  options.type = schedule.types[op.is_cast ? op.inputs[0] : op.output];
  return MadeForLayer(graph, op.node,
                      Builder(graph, op, schedule.types[op.output], options, ops, context).Build());
}

absl::StatusOr<std::unique_ptr<Loss>> BuildLoss(const ModelGraph& graph, int node, int64_t batch,
                                                const OpTable& ops, OpContext* context) {
  const LayerDef& layer = graph.nodes()[node].layer;
  const Shape& scores = graph.nodes()[graph.nodes()[node].inputs[0]].output;
  LossOptions options{LossKind::kL2, batch * scores.num_elements() / LastDim(scores),
                      LastDim(scores)};
  if (layer.has_softmax_cross_entropy()) options.kind = LossKind::kSoftmaxCrossEntropy;
  if (layer.has_sigmoid_cross_entropy()) {
    options.kind = LossKind::kSigmoidCrossEntropy;
    if (layer.sigmoid_cross_entropy().has_target()) {
      options.target = layer.sigmoid_cross_entropy().target();
    }
  }
  return MadeForLayer(graph, node, ops.Make(context, options));
}

}  // namespace lockstep::worker
