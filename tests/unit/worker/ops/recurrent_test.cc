// LSTM and GRU: against the reference and against what Keras answered.
#include <catch2/catch.hpp>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/reference/layers.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/ops/gru.h"
#include "worker/ops/lstm.h"

namespace lockstep::worker {
namespace {

using reference::Array;

enum class Kind { kLstm, kGru };

std::unique_ptr<Op> Make(TestOps& ops, Kind kind, const RecurrentOptions& options) {
  OpTable::MadeOr<Op> op =
      kind == Kind::kLstm ? ops.Make(LstmOptions{options}) : ops.Make(GruOptions{options});
  REQUIRE(op.ok());
  return *std::move(op);
}

struct Operands {
  std::vector<Array> inputs;
  std::vector<Array> variables;
};

Operands OperandsOf(Kind kind, const RecurrentOptions& options) {
  const int64_t width = (kind == Kind::kLstm ? 4 : 3) * options.units;
  Operands operands;
  operands.inputs = {Array::Random({options.batch, options.time, options.inputs}, "x")};
  if (options.initial_states) {
    operands.inputs.push_back(Array::Random({options.batch, options.units}, "h"));
    if (kind == Kind::kLstm) {
      operands.inputs.push_back(Array::Random({options.batch, options.units}, "c"));
    }
  }
  operands.variables = {Array::Random({options.inputs, width}, "kernel"),
                        Array::Random({options.units, width}, "recurrent")};
  if (options.bias) {
    operands.variables.push_back(kind == Kind::kLstm ? Array::Random({width}, "bias")
                                                     : Array::Random({2, width}, "bias"));
  }
  return operands;
}

RecurrentOptions Sized(int64_t batch, int64_t time, int64_t inputs, int64_t units) {
  RecurrentOptions options;
  options.batch = batch;
  options.time = time;
  options.inputs = inputs;
  options.units = units;
  return options;
}

TEST_CASE("recurrent layers agree with the reference, forward and backward") {
  for (const Kind kind : {Kind::kLstm, Kind::kGru}) {
    for (const int threads : {1, 3}) {
      for (const int variant : {0, 1, 2, 3, 4, 5, 6, 7}) {
        RecurrentOptions options = variant % 2 == 0 ? Sized(3, 4, 2, 5) : Sized(2, 1, 3, 1);
        options.return_sequences = (variant & 2) != 0;
        options.initial_states = (variant & 4) != 0;
        options.bias = variant != 3;
        CAPTURE(kind, threads, variant);
        TestOps ops(threads);
        const std::unique_ptr<Op> op = Make(ops, kind, options);
        const Operands operands = OperandsOf(kind, options);
        CheckOp(ops, *op, operands.inputs, operands.variables, operands.variables.size(),
                [&](const std::vector<Array>& x, const std::vector<Array>& v) {
                  return kind == Kind::kLstm ? reference::Lstm(x, v, options.return_sequences)
                                             : reference::Gru(x, v, options.return_sequences);
                });
      }
    }
  }
}

TEST_CASE("recurrent layers repeat themselves, whatever was computed before") {
  for (const Kind kind : {Kind::kLstm, Kind::kGru}) {
    CAPTURE(kind);
    RecurrentOptions options = Sized(4, 6, 3, 5);
    options.return_sequences = true;
    TestOps ops(2);
    const std::unique_ptr<Op> op = Make(ops, kind, options);
    const Operands operands = OperandsOf(kind, options);
    const Array weights = Array::Random({4, 6, 5}, "weights");
    std::vector<Array> kernels;
    std::vector<Array> outputs;
    for (int round = 0; round < 3; ++round) {
      OpRun run(ops, operands.inputs, operands.variables, {4, 6, 5});
      outputs.push_back(run.Forward(*op, Mode::kTraining));
      run.Backward(*op, weights);
      kernels.push_back(reference::ToArray(run.variable_gradients[1].view()));
    }
    CHECK(outputs[0].values == outputs[2].values);
    CHECK(kernels[0].values == kernels[2].values);
  }
}

TEST_CASE("a frozen recurrent layer passes its gradient on and leaves those of variables alone") {
  for (const Kind kind : {Kind::kLstm, Kind::kGru}) {
    CAPTURE(kind);
    RecurrentOptions options = Sized(2, 3, 2, 4);
    options.variable_gradients = false;
    TestOps ops(1);
    const std::unique_ptr<Op> op = Make(ops, kind, options);
    const Operands operands = OperandsOf(kind, options);
    OpRun run(ops, operands.inputs, operands.variables, {2, 4});
    run.Forward(*op, Mode::kTraining);
    run.Backward(*op, Array::Random({2, 4}, "weights"));
    for (const Tensor& gradient : run.variable_gradients) {
      for (const float value : gradient.as<float>()) CHECK(std::isnan(value));
    }
    for (const float value : run.input_gradients[0].as<float>()) CHECK(std::isfinite(value));
  }
}

TEST_CASE("recurrent layers saturate without overflow and pass on what is no number") {
  for (const Kind kind : {Kind::kLstm, Kind::kGru}) {
    CAPTURE(kind);
    const RecurrentOptions options = Sized(2, 3, 2, 4);
    TestOps ops(1);
    const std::unique_ptr<Op> op = Make(ops, kind, options);
    Operands operands = OperandsOf(kind, options);
    for (double& value : operands.inputs[0].values) value *= 1e30;
    OpRun large(ops, operands.inputs, operands.variables, {2, 4});
    for (const double value : large.Forward(*op, Mode::kTraining).values) {
      CHECK(std::abs(value) <= 1);
    }
    // Of the second example alone.
    operands.inputs[0].values.back() = std::numeric_limits<double>::quiet_NaN();
    OpRun broken(ops, operands.inputs, operands.variables, {2, 4});
    const Array output = broken.Forward(*op, Mode::kTraining);
    for (int i = 0; i < 8; ++i) CHECK(std::isnan(output.values[i]) == (i >= 4));
  }
}

Array ArrayOf(const nlohmann::json& json) {
  Array array(json["dims"].get<std::vector<int64_t>>());
  array.values = json["values"].get<std::vector<double>>();
  return array;
}

std::vector<Array> ArraysOf(const nlohmann::json& json) {
  std::vector<Array> arrays;
  for (const nlohmann::json& element : json) arrays.push_back(ArrayOf(element));
  return arrays;
}

TEST_CASE("recurrent layers agree with Keras to a millionth in float32, gradients included") {
  const double of_products = test::ToleranceOfTestDevice();
  const double most = of_products <= 1e-5 ? 1e-6 : of_products;
  std::ifstream file("tests/unit/worker/ops/recurrent_keras.json");
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  REQUIRE(cases.size() == 10);
  for (const nlohmann::json& recorded : cases) {
    const Kind kind = recorded["kind"] == "lstm" ? Kind::kLstm : Kind::kGru;
    const std::vector<Array> inputs = ArraysOf(recorded["inputs"]);
    const std::vector<Array> variables = ArraysOf(recorded["variables"]);
    RecurrentOptions options =
        Sized(inputs[0].dims[0], inputs[0].dims[1], inputs[0].dims[2], variables[1].dims[0]);
    options.return_sequences = recorded["return_sequences"].get<bool>();
    options.bias = variables.size() == 3;
    options.initial_states = inputs.size() > 1;
    CAPTURE(kind, options.batch, options.time, options.inputs, options.units);
    TestOps ops(2);
    const std::unique_ptr<Op> op = Make(ops, kind, options);
    const Array output = ArrayOf(recorded["output"]);
    OpRun run(ops, inputs, variables, output.dims);
    CHECK(reference::Distance(run.Forward(*op, Mode::kTraining), output) < most);
    run.Backward(*op, ArrayOf(recorded["output_gradient"]));
    const auto check = [most](const std::vector<Tensor>& got, const nlohmann::json& wanted) {
      REQUIRE(got.size() == wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(reference::Distance(reference::ToArray(got[i].view()), ArrayOf(wanted[i])) < most);
      }
    };
    check(run.input_gradients, recorded["input_gradients"]);
    check(run.variable_gradients, recorded["variable_gradients"]);
  }
}

}  // namespace
}  // namespace lockstep::worker
