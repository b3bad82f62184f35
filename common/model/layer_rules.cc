#include "common/model/layer_rules.h"

#include <cmath>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/model/custom_layers.h"
#include "common/model/initializer_rules.h"
#include "common/model/loss_rules.h"
#include "common/model/recurrent_rules.h"
#include "common/model/size_rules.h"
#include "common/model/window.h"

namespace lockstep {
namespace {

using google::protobuf::RepeatedField;

// Beyond it float32, which examples are made of, does not count one by one.
constexpr int64_t kMaxRows = 16777216;
constexpr int64_t kMaxSyntheticVariables = 10000;
constexpr int64_t kMaxReleaseMicros = 60'000'000;
constexpr float kDefaultMomentum = 0.99f;
constexpr float kDefaultEpsilon = 0.001f;

absl::Status RequireImage(const Shape& input) {
  if (input.rank() == 3) return absl::OkStatus();
  const std::string remedy =
      input.rank() == 2
          ? absl::StrCat("write the channels too, input_shape: [", input.dim(0), ",", input.dim(1),
                         ",1] for grey images")
          : std::string(
                "put it ahead of flatten and dense layers; rows of numbers are no images, "
                "use dense layers for them");
  return Invalid("expected an input [height,width,channels], got ", input.ToString(),
                 ". Remedy: ", remedy);
}

absl::Status MissingWindow(absl::string_view field) {
  return Invalid(field, ": expected one number or height and width, got none. Remedy: write ",
                 field, ": 3 or ", field, ": [3, 5]");
}

// Height and width of `field`; one number counts for both, none for `fallback`.
absl::Status CompletePair(absl::string_view field, std::pair<int64_t, int64_t> fallback,
                          RepeatedField<int64_t>* values) {
  if (values->size() > 2) {
    return Invalid(field, ": expected one number or height and width, got ", values->size(),
                   " numbers. Remedy: write ", field, ": 3 or ", field, ": [3, 5]");
  }
  for (int64_t value : *values) LOCKSTEP_RETURN_IF_ERROR(Positive(field, value).status());
  if (values->empty()) {
    values->Add(int64_t{fallback.first});
    values->Add(int64_t{fallback.second});
  } else if (values->size() == 1) {
    values->Add(int64_t{values->Get(0)});
  }
  return absl::OkStatus();
}

// The image that a window moving over `input` leaves, with this many channels.
absl::StatusOr<Shape> Slide(const Shape& input, absl::string_view field,
                            const RepeatedField<int64_t>& window,
                            const RepeatedField<int64_t>& strides, Padding padding,
                            int64_t channels) {
  if (padding != SAME && padding != VALID) {
    return Invalid("padding: expected SAME or VALID, got ", static_cast<int>(padding),
                   ". Remedy: use one of the two");
  }
  int64_t extent[2];
  for (int axis : {0, 1}) {
    extent[axis] = PlanWindow(input.dim(axis), window.Get(axis), strides.Get(axis), padding).output;
    if (extent[axis] < 1) {
      return Invalid(field, ": ", window.Get(0), "x", window.Get(1), " without padding is larger ",
                     "than the input ", input.ToString(), ". Remedy: padding: SAME, or a smaller ",
                     field);
    }
  }
  return SizedShape("the output", {extent[0], extent[1], channels});
}

// Kernel and bias of a dense or conv2d layer.
template <typename Def>
absl::StatusOr<std::vector<LayerVariable>> KernelAndBias(Def& def,
                                                         absl::Span<const int64_t> kernel_dims) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      *def.mutable_kernel_initializer(),
      CompleteInitializer("kernel_initializer", def.kernel_initializer(), Glorot()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      *def.mutable_bias_initializer(),
      CompleteInitializer("bias_initializer", def.bias_initializer(), Zeros()));
  LOCKSTEP_ASSIGN_OR_RETURN(Shape kernel, SizedShape("the kernel", kernel_dims));
  std::vector<LayerVariable> variables;
  variables.push_back({"kernel", std::move(kernel), def.kernel_initializer()});
  if (!def.no_bias()) {
    variables.push_back({"bias", Shape({kernel_dims.back()}), def.bias_initializer()});
  }
  return variables;
}

absl::StatusOr<InferredLayer> InferDense(Dense& def, const Shape& input) {
  if (input.rank() != 2) LOCKSTEP_RETURN_IF_ERROR(RequireVector(input));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t units, Positive("units", def.units()));
  InferredLayer inferred;
  std::vector<int64_t> dims(input.dims().begin(), input.dims().end());
  dims.back() = units;
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.output, SizedShape("the output", dims));
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.variables,
                            KernelAndBias(def, {input.dim(input.rank() - 1), units}));
  return inferred;
}

absl::StatusOr<InferredLayer> InferConv2D(Conv2D& def, const Shape& input) {
  LOCKSTEP_RETURN_IF_ERROR(RequireImage(input));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t filters, Positive("filters", def.filters()));
  if (def.kernel().empty()) return MissingWindow("kernel");
  LOCKSTEP_RETURN_IF_ERROR(CompletePair("kernel", {1, 1}, def.mutable_kernel()));
  LOCKSTEP_RETURN_IF_ERROR(CompletePair("strides", {1, 1}, def.mutable_strides()));
  InferredLayer inferred;
  LOCKSTEP_ASSIGN_OR_RETURN(
      inferred.output, Slide(input, "kernel", def.kernel(), def.strides(), def.padding(), filters));
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.variables, KernelAndBias(def, {def.kernel(0), def.kernel(1),
                                                                    input.dim(2), filters}));
  return inferred;
}

absl::StatusOr<InferredLayer> InferPool(Pool& def, const Shape& input) {
  LOCKSTEP_RETURN_IF_ERROR(RequireImage(input));
  if (def.window().empty()) return MissingWindow("window");
  LOCKSTEP_RETURN_IF_ERROR(CompletePair("window", {1, 1}, def.mutable_window()));
  LOCKSTEP_RETURN_IF_ERROR(
      CompletePair("strides", {def.window(0), def.window(1)}, def.mutable_strides()));
  InferredLayer inferred;
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.output, Slide(input, "window", def.window(), def.strides(),
                                                   def.padding(), input.dim(2)));
  return inferred;
}

absl::StatusOr<InferredLayer> InferBatchNorm(BatchNorm& def, const Shape& input) {
  if (def.momentum() == 0) def.set_momentum(kDefaultMomentum);
  if (def.epsilon() == 0) def.set_epsilon(kDefaultEpsilon);
  if (!(def.momentum() > 0 && def.momentum() < 1)) {
    return Invalid("momentum: expected a number between 0 and 1, got ", def.momentum(),
                   ". Remedy: leave it out for ", kDefaultMomentum);
  }
  if (!(def.epsilon() > 0 && std::isfinite(def.epsilon()))) {
    return Invalid("epsilon: expected a positive number, got ", def.epsilon(),
                   ". Remedy: leave it out for ", kDefaultEpsilon);
  }
  const Shape channels({input.dim(input.rank() - 1)});
  InferredLayer inferred{input};
  inferred.variables = {{"gamma", channels, Ones()},
                        {"beta", channels, Zeros()},
                        {"moving_mean", channels, Zeros(), /*trainable=*/false},
                        {"moving_variance", channels, Ones(), /*trainable=*/false}};
  return inferred;
}

absl::StatusOr<InferredLayer> InferAdd(absl::Span<const Shape> inputs) {
  LOCKSTEP_RETURN_IF_ERROR(RequireInputs(inputs, 2, /*more=*/true));
  for (const Shape& input : inputs) {
    if (!(input == inputs[0])) {
      return Invalid("inputs: expected one shape, got ", inputs[0].ToString(), " and ",
                     input.ToString(), ". Remedy: give the layers that it adds one shape, or use ",
                     "concatenate");
    }
  }
  return InferredLayer{inputs[0]};
}

absl::StatusOr<InferredLayer> InferConcatenate(absl::Span<const Shape> inputs) {
  LOCKSTEP_RETURN_IF_ERROR(RequireInputs(inputs, 2, /*more=*/true));
  std::vector<int64_t> dims(inputs[0].dims().begin(), inputs[0].dims().end());
  dims.back() = 0;
  for (const Shape& input : inputs) {
    const auto outer = [](const Shape& s) { return s.dims().subspan(0, s.rank() - 1); };
    if (outer(input) != outer(inputs[0])) {
      return Invalid("inputs: expected shapes that differ in the last dimension only, got ",
                     inputs[0].ToString(), " and ", input.ToString(),
                     ". Remedy: flatten them first, or give them one height and width");
    }
    // Each is at most kMaxElements and a file holds fewer than 2^32 inputs: no overflow.
    dims.back() += input.dims().back();
  }
  InferredLayer inferred;
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.output, SizedShape("the output", dims));
  return inferred;
}

absl::StatusOr<InferredLayer> InferDropout(const Dropout& def, const Shape& input) {
  if (!(def.rate() >= 0 && def.rate() < 1)) {
    return Invalid("rate: expected a number from 0 to below 1, got ", def.rate(),
                   ". Remedy: write the share of elements to drop, such as rate: 0.5");
  }
  return InferredLayer{input};
}

absl::StatusOr<InferredLayer> InferColumns(const Columns& def, const Shape& input) {
  const int64_t extent = input.dim(input.rank() - 1);
  if (def.first() < 0 || def.count() < 1 || def.first() > extent - def.count()) {
    return Invalid("first, count: expected columns within the ", extent, " of the input ",
                   input.ToString(), ", at least one, got first ", def.first(), " and count ",
                   def.count(), ". Remedy: count columns from 0, such as first: 0 count: ", extent);
  }
  std::vector<int64_t> dims(input.dims().begin(), input.dims().end());
  dims.back() = def.count();
  return InferredLayer{Shape(absl::MakeConstSpan(dims))};
}

absl::Status CheckLookup(int64_t rows, const Shape& input) {
  if (input.rank() != 1) {
    return Invalid("expected row indices [n], got an input ", input.ToString(),
                   ". Remedy: write the examples as one row of numbers, input_shape: [n]");
  }
  if (rows >= 1 && rows <= kMaxRows) return absl::OkStatus();
  return Invalid("rows: expected 1 to ", kMaxRows, ", got ", rows,
                 ". Remedy: write one more than the largest row index in the data");
}

// Of the output of an embedding of so many rows.
absl::StatusOr<Shape> CombinedShape(const Embedding& def, int64_t rows) {
  switch (def.combiner()) {
    case Embedding::SUM:
      return Shape({def.dim()});
    case Embedding::SEQUENCE:
      return SizedShape("the output", {rows, def.dim()});
    default:
      return SizedShape("the output", {rows * def.dim()});
  }
}

absl::StatusOr<InferredLayer> InferEmbedding(Embedding& def, const Shape& input) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLookup(def.rows(), input));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t dim, Positive("dim", def.dim()));
  if (!Embedding::Combiner_IsValid(def.combiner())) {
    return Invalid("combiner: expected CONCATENATE, SUM or SEQUENCE, got ",
                   static_cast<int>(def.combiner()), ". Remedy: use one of them");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      *def.mutable_initializer(),
      CompleteInitializer("initializer", def.initializer(),
                          TruncatedNormal(1 / std::sqrt(static_cast<float>(dim)))));
  InferredLayer inferred;
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.output, CombinedShape(def, input.dim(0)));
  LOCKSTEP_ASSIGN_OR_RETURN(Shape table, SizedShape("the table", {def.rows(), dim}));
  inferred.variables.push_back(
      {"table", std::move(table), def.initializer(), /*trainable=*/true, /*sparse=*/true});
  return inferred;
}

absl::StatusOr<InferredLayer> InferSynthetic(Synthetic& def, const Shape& input) {
  if (def.variables() == 0) def.set_variables(1);
  if (def.variables() < 1 || def.variables() > kMaxSyntheticVariables) {
    return Invalid("variables: expected 1 to ", kMaxSyntheticVariables, ", got ", def.variables(),
                   ". Remedy: correct it, or leave it out for 1");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t elements, Positive("elements", def.elements()));
  if (def.release_every_us() < 0 || def.release_every_us() > kMaxReleaseMicros) {
    return Invalid("release_every_us: expected 0 to ", kMaxReleaseMicros, " (a minute), got ",
                   def.release_every_us(), ". Remedy: correct it, or leave it out");
  }
  const bool is_table = def.rows() != 0;
  Shape shape({elements});
  if (is_table) {
    LOCKSTEP_RETURN_IF_ERROR(CheckLookup(def.rows(), input));
    LOCKSTEP_ASSIGN_OR_RETURN(shape, SizedShape("the table", {def.rows(), elements}));
  }
  InferredLayer inferred{input};
  for (int64_t i = 0; i < def.variables(); ++i) {
    inferred.variables.push_back(
        {absl::StrCat("value_", i), shape, Zeros(), /*trainable=*/true, /*sparse=*/is_table});
  }
  return inferred;
}

absl::StatusOr<InferredLayer> InferNoise(const Noise& def, absl::Span<const Shape> inputs) {
  if (!inputs.empty()) {
    return Invalid("inputs: expected none, got ", inputs.size(), ". Remedy: remove them");
  }
  const std::vector<int64_t> dims(def.shape().begin(), def.shape().end());
  bool is_shape = !dims.empty() && dims.size() < Shape::kMaxRank;
  for (const int64_t extent : dims) is_shape = is_shape && extent >= 1;
  if (!is_shape) {
    return Invalid("shape: expected the shape for one example, every extent at least 1, got [",
                   absl::StrJoin(dims, ","), "]. Remedy: write [16] for 16 numbers");
  }
  InferredLayer inferred;
  LOCKSTEP_ASSIGN_OR_RETURN(inferred.output, SizedShape("the output", dims));
  return inferred;
}

absl::StatusOr<InferredLayer> InferCustom(const CustomKind& def, absl::Span<const Shape> inputs) {
  if (const CustomLayerRule rule = FindCustomLayer(def.type())) return rule(def, inputs);
  std::vector<std::string> known = KindNames();
  std::erase(known, "custom");
  for (const std::string& type : CustomLayerTypes()) {
    known.push_back(absl::StrCat("custom { type: \"", type, "\" }"));
  }
  return Invalid("custom.type: no layer is registered as \"",
                 absl::CHexEscape(def.type().substr(0, 100)), "\". Remedy: use one of ",
                 absl::StrJoin(known, ", "),
                 ", or link the code that registers it into every program");
}

}  // namespace

absl::string_view KindName(const LayerDef& layer) {
  if (layer.kind_case() == LayerDef::KIND_NOT_SET) return "";
  return LayerDef::descriptor()->FindFieldByNumber(layer.kind_case())->name();
}

std::vector<std::string> KindNames() {
  const google::protobuf::OneofDescriptor* kinds = LayerDef::descriptor()->FindOneofByName("kind");
  std::vector<std::string> names;
  for (int i = 0; i < kinds->field_count(); ++i) names.push_back(kinds->field(i)->name());
  return names;
}

absl::StatusOr<InferredLayer> InferLayer(LayerDef& layer, absl::Span<const Shape> inputs) {
  if (layer.has_add()) return InferAdd(inputs);
  if (layer.has_concatenate()) return InferConcatenate(inputs);
  if (layer.has_lstm()) return InferLstm(*layer.mutable_lstm(), inputs);
  if (layer.has_gru()) return InferGru(*layer.mutable_gru(), inputs);
  if (layer.has_custom()) return InferCustom(layer.custom(), inputs);
  if (layer.has_noise()) return InferNoise(layer.noise(), inputs);
  if (layer.kind_case() != LayerDef::KIND_NOT_SET) {
    LOCKSTEP_RETURN_IF_ERROR(RequireInputs(inputs, 1, /*more=*/false));
  }
  switch (layer.kind_case()) {
    case LayerDef::kDense:
      return InferDense(*layer.mutable_dense(), inputs[0]);
    case LayerDef::kConv2D:
      return InferConv2D(*layer.mutable_conv2d(), inputs[0]);
    case LayerDef::kMaxPool:
      return InferPool(*layer.mutable_max_pool(), inputs[0]);
    case LayerDef::kAveragePool:
      return InferPool(*layer.mutable_average_pool(), inputs[0]);
    case LayerDef::kRelu:
    case LayerDef::kTanh:
    case LayerDef::kSigmoid:
      return InferredLayer{inputs[0]};
    case LayerDef::kBatchNorm:
      return InferBatchNorm(*layer.mutable_batch_norm(), inputs[0]);
    case LayerDef::kDropout:
      return InferDropout(layer.dropout(), inputs[0]);
    case LayerDef::kFlatten:
      return InferredLayer{Shape({inputs[0].num_elements()})};
    case LayerDef::kColumns:
      return InferColumns(layer.columns(), inputs[0]);
    case LayerDef::kEmbedding:
      return InferEmbedding(*layer.mutable_embedding(), inputs[0]);
    case LayerDef::kSynthetic:
      return InferSynthetic(*layer.mutable_synthetic(), inputs[0]);
    case LayerDef::kSoftmaxCrossEntropy:
    case LayerDef::kL2Loss:
    case LayerDef::kSigmoidCrossEntropy:
      return InferLoss(layer, inputs[0]);
    case LayerDef::kAdd:
    case LayerDef::kConcatenate:
    case LayerDef::kLstm:
    case LayerDef::kGru:
    case LayerDef::kCustom:
    case LayerDef::kNoise:
    case LayerDef::KIND_NOT_SET:
      break;
  }
  return Invalid("it does not say what it does. Remedy: write one of ",
                 absl::StrJoin(KindNames(), ", "), ", such as relu {}");
}

}  // namespace lockstep
