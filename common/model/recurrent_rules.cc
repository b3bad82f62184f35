#include "common/model/recurrent_rules.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/model/initializer_rules.h"
#include "common/model/size_rules.h"

namespace lockstep {
namespace {

// What distinguishes one kind from the other.
struct Recurrence {
  int64_t gates = 0;
  size_t states = 0;
  const char* state_names = "";
  Initializer bias_initializer;
  bool two_biases = false;
};

absl::Status CheckInputs(const Recurrence& kind, int64_t units, absl::Span<const Shape> inputs) {
  if (inputs.size() != 1 && inputs.size() != 1 + kind.states) {
    return Invalid("inputs: expected a sequence, and after it ", kind.state_names, " or none, got ",
                   inputs.size(), " inputs. Remedy: name one layer, or ", 1 + kind.states);
  }
  if (inputs[0].rank() != 2) {
    return Invalid("expected a sequence [time,features], got an input ", inputs[0].ToString(),
                   ". Remedy: write input_shape: [time, features], or put an embedding with "
                   "combiner: SEQUENCE before it");
  }
  for (const Shape& state : inputs.subspan(1)) {
    if (state == Shape({units})) continue;
    return Invalid("inputs: expected an initial state [", units,
                   "], one number for each unit, got ", state.ToString(),
                   ". Remedy: take a layer of that shape");
  }
  return absl::OkStatus();
}

template <typename Def>
absl::StatusOr<InferredLayer> Infer(const Recurrence& kind, Def& def,
                                    absl::Span<const Shape> inputs) {
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t units, Positive("units", def.units()));
  LOCKSTEP_RETURN_IF_ERROR(CheckInputs(kind, units, inputs));
  const auto complete = [](const char* field, const Initializer& fallback,
                           Initializer* initializer) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(*initializer, CompleteInitializer(field, *initializer, fallback));
    return absl::OkStatus();
  };
  LOCKSTEP_RETURN_IF_ERROR(
      complete("kernel_initializer", Glorot(), def.mutable_kernel_initializer()));
  LOCKSTEP_RETURN_IF_ERROR(
      complete("recurrent_initializer", Orthogonal(), def.mutable_recurrent_initializer()));
  LOCKSTEP_RETURN_IF_ERROR(
      complete("bias_initializer", kind.bias_initializer, def.mutable_bias_initializer()));

  const int64_t time = inputs[0].dim(0);
  const int64_t width = kind.gates * units;  // units is below 2^31: no overflow
  InferredLayer inferred{Shape({units})};
  // A step has all gates in memory at once.
  LOCKSTEP_RETURN_IF_ERROR(SizedShape("the gates of all steps", {time, width}).status());
  if (def.return_sequences()) inferred.output = Shape({time, units});
  LOCKSTEP_ASSIGN_OR_RETURN(Shape kernel, SizedShape("the kernel", {inputs[0].dim(1), width}));
  LOCKSTEP_ASSIGN_OR_RETURN(Shape recurrent, SizedShape("the recurrent kernel", {units, width}));
  inferred.variables.push_back({"kernel", std::move(kernel), def.kernel_initializer()});
  inferred.variables.push_back(
      {"recurrent_kernel", std::move(recurrent), def.recurrent_initializer()});
  if (!def.no_bias()) {
    inferred.variables.push_back(
        {"bias", kind.two_biases ? Shape({2, width}) : Shape({width}), def.bias_initializer()});
  }
  return inferred;
}

}  // namespace

absl::StatusOr<InferredLayer> InferLstm(Lstm& def, absl::Span<const Shape> inputs) {
  return Infer({4, 2, "the initial states h and c", UnitForgetBias()}, def, inputs);
}

absl::StatusOr<InferredLayer> InferGru(Gru& def, absl::Span<const Shape> inputs) {
  return Infer({3, 1, "the initial state", Zeros(), /*two_biases=*/true}, def, inputs);
}

}  // namespace lockstep
