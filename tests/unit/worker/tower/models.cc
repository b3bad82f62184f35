#include "tests/unit/worker/tower/models.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/philox.h"
#include "common/model/index_columns.h"

namespace lockstep::worker {

using reference::Array;

const char kLeNet[] = R"pb(
  input_shape: [ 10, 9, 2 ]
  layers {
    name: "conv1"
    conv2d { filters: 4 kernel: 3 }
  }
  layers {
    name: "relu1"
    relu {}
  }
  layers {
    name: "pool1"
    max_pool { window: 2 }
  }
  layers {
    name: "conv2"
    conv2d {
      filters: 6
      kernel: [ 3, 2 ]
      padding: VALID
    }
  }
  layers {
    name: "relu2"
    relu {}
  }
  layers {
    name: "pool2"
    average_pool { window: 2 strides: 1 padding: SAME }
  }
  layers {
    name: "flat"
    flatten {}
  }
  layers {
    name: "dense1"
    dense { units: 12 }
  }
  layers {
    name: "tanh"
    tanh {}
  }
  layers {
    name: "dense2"
    dense { units: 5 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const char kResidual[] = R"pb(
  input_shape: [ 6, 6, 3 ]
  layers {
    name: "stem"
    conv2d { filters: 4 kernel: 3 no_bias: true }
  }
  layers {
    name: "norm"
    batch_norm {}
  }
  layers {
    name: "relu"
    relu {}
  }
  layers {
    name: "left"
    conv2d { filters: 4 kernel: 3 }
    inputs: "relu"
  }
  layers {
    name: "right"
    conv2d { filters: 4 kernel: 1 no_bias: true }
    inputs: "relu"
  }
  layers {
    name: "right_norm"
    batch_norm { momentum: 0.5 }
  }
  layers {
    name: "left_relu"
    relu {}
    inputs: "left"
  }
  layers {
    name: "sum"
    add {}
    inputs: [ "left_relu", "right_norm", "relu", "relu" ]
  }
  layers {
    name: "sigmoid"
    sigmoid {}
    inputs: "sum"
  }
  layers {
    name: "joined"
    concatenate {}
    inputs: [ "sigmoid", "relu", "input", "sum" ]
  }
  layers {
    name: "flat"
    flatten {}
  }
  layers {
    name: "fc"
    dense { units: 4 }
    inputs: "flat"
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const char kRegression[] = R"pb(
  input_shape: [ 4, 4, 3 ]
  layers {
    name: "pool"
    average_pool { window: 2 }
  }
  layers {
    name: "flat"
    flatten {}
  }
  layers {
    name: "norm"
    batch_norm {}
  }
  layers {
    name: "fc1"
    dense { units: 7 }
  }
  layers {
    name: "relu"
    relu {}
  }
  layers {
    name: "fc2"
    dense { units: 3 no_bias: true }
  }
  layers {
    name: "loss"
    l2_loss {}
  }
)pb";

const char kWideAndDeep[] = R"pb(
  input_shape: [ 7 ]
  layers {
    name: "indices"
    columns { first: 0 count: 3 }
  }
  layers {
    name: "wide"
    embedding { rows: 11 dim: 4 combiner: SUM }
  }
  layers {
    name: "deep"
    embedding { rows: 11 dim: 2 }
    inputs: "indices"
  }
  layers {
    name: "numbers"
    columns { first: 3 count: 4 }
    inputs: "input"
  }
  layers {
    name: "joined"
    concatenate {}
    inputs: [ "deep", "numbers" ]
  }
  layers {
    name: "hidden"
    dense { units: 6 }
  }
  layers {
    name: "relu"
    relu {}
  }
  layers {
    name: "scores"
    dense { units: 4 }
  }
  layers {
    name: "first_hidden"
    columns { first: 1 count: 4 }
    inputs: "relu"
  }
  layers {
    name: "sum"
    add {}
    inputs: [ "wide", "scores", "first_hidden" ]
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const char kSequences[] = R"pb(
  input_shape: [ 7 ]
  layers {
    name: "characters"
    embedding { rows: 9 dim: 4 combiner: SEQUENCE }
  }
  layers {
    name: "flat"
    flatten {}
  }
  layers {
    name: "start"
    dense { units: 5 }
  }
  layers {
    name: "lstm"
    lstm { units: 5 return_sequences: true }
    inputs: [ "characters", "start", "start" ]
  }
  layers {
    name: "gru"
    gru { units: 6 return_sequences: true }
  }
  layers {
    name: "hidden"
    dense { units: 8 }
  }
  layers {
    name: "relu"
    relu {}
  }
  layers {
    name: "scores"
    dense { units: 9 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const char kStates[] = R"pb(
  input_shape: [ 6, 3 ]
  state_inputs { name: "h" units: 5 }
  state_inputs { name: "c" units: 5 }
  state_inputs { name: "last" units: 4 }
  layers {
    name: "steps"
    dense { units: 4 }
  }
  layers {
    name: "lstm"
    lstm { units: 5 return_sequences: true }
    inputs: [ "steps", "h", "c" ]
  }
  layers {
    name: "start"
    dense { units: 4 }
    inputs: "last"
  }
  layers {
    name: "sum"
    add {}
    inputs: [ "start", "last" ]
  }
  layers {
    name: "gru"
    gru { units: 4 return_sequences: true }
    inputs: [ "lstm", "sum" ]
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

ModelGraph GraphOf(const std::string& text) {
  ModelDef def;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &def));
  absl::StatusOr<ModelGraph> graph = ModelGraph::Build(def);
  INFO(graph.status());
  REQUIRE(graph.ok());
  return *std::move(graph);
}

std::vector<Array> VariablesOf(const ModelGraph& graph) {
  std::vector<Array> variables;
  for (const ModelVariable& variable : graph.variables()) {
    const absl::Span<const int64_t> dims = variable.shape.dims();
    variables.push_back(Array::Random({dims.begin(), dims.end()}, variable.name));
    for (double& value : variables.back().values) {
      // Small enough that no layer saturates; floats, so that both sides compute from the same.
      value =
          static_cast<float>(value * 0.5 + (absl::EndsWith(variable.name, "variance") ? 1.0 : 0.0));
    }
  }
  return variables;
}

Batch BatchOf(const ModelGraph& graph, int64_t size, int64_t first) {
  const auto fill = [&](Tensor& tensor, absl::string_view name) {
    const Philox generator(1, name);
    const std::span<float> values = tensor.as<float>();
    const int64_t per_example = tensor.num_elements() / size;
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      values[i] = 2 * UniformFloat(generator.At(first * per_example + i)[0]) - 1;
    }
  };
  std::vector<int64_t> dims = {size};
  const absl::Span<const int64_t> example = graph.input_shape().dims();
  dims.insert(dims.end(), example.begin(), example.end());
  Batch batch{Tensor(DType::kFloat32, Shape(absl::MakeConstSpan(dims))), Tensor()};
  fill(batch.features, "features");
  for (const IndexColumns& index : IndexColumnsOf(graph)) {
    const Philox generator(1, "indices");
    const int64_t width = batch.features.num_elements() / size;
    for (int64_t i = 0; i < size; ++i) {
      for (int64_t c = index.columns.first; c < index.columns.first + index.columns.count; ++c) {
        batch.features.as<float>()[i * width + c] =
            static_cast<float>(generator.At((first + i) * width + c)[0] % index.rows);
      }
    }
  }
  for (int state = 1; state <= graph.num_state_inputs(); ++state) {
    const ModelNode& node = graph.nodes()[state];
    batch.states.emplace_back(DType::kFloat32, Shape({size, node.output.dim(0)}));
    fill(batch.states.back(), node.name);
  }
  if (graph.is_classifier()) {
    const int64_t labels = graph.labels_per_example();
    batch.labels = Tensor(DType::kInt32, labels == 1 ? Shape({size}) : Shape({size, labels}));
    for (int64_t i = 0; i < size * labels; ++i) {
      batch.labels.as<int32_t>()[i] =
          static_cast<int32_t>((first * labels + i) * 3 % graph.num_outputs());
    }
  } else {
    batch.labels = Tensor(DType::kFloat32, Shape({size, graph.num_outputs()}));
    fill(batch.labels, "labels");
  }
  return batch;
}

Operands::Operands(const ModelGraph& graph, const TensorMaker& make_gradient) {
  for (const Array& variable : VariablesOf(graph)) {
    variables.push_back(reference::ToTensor(variable));
    gradients.push_back(make_gradient(DType::kFloat32, variables.back().shape()));
    std::ranges::fill(gradients.back().as<float>(), std::numeric_limits<float>::quiet_NaN());
    gradient_views.push_back(gradients.back().view());
    if (graph.variables()[gradients.size() - 1].frozen) gradient_views.back().data = nullptr;
  }
  for (const Tensor& variable : variables) variable_views.push_back(variable.view());
}

PartOperands::PartOperands(const ModelGraph& graph, Operands* whole,
                           std::span<const std::span<const int64_t>> rows) {
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    views.push_back(whole->variable_views[v]);
    gradient_views.push_back(whole->gradient_views[v]);
    if (!graph.variables()[v].sparse) continue;
    const int64_t dim = graph.variables()[v].shape.dim(1);
    const int64_t count = static_cast<int64_t>(rows[v].size());
    tables.emplace_back(DType::kFloat32, Shape({count, dim}));
    for (int64_t i = 0; i < count * dim; ++i) {
      tables.back().as<float>()[i] =
          whole->variables[v].as<float>()[rows[v][i / dim] * dim + i % dim];
    }
    views.back() = tables.back().view();
    tables.push_back(tables.back().Clone());
    gradient_views.back() = tables.back().view();
  }
}

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.num_bytes()) == 0;
}

}  // namespace lockstep::worker
