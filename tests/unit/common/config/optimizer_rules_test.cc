#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "common/config/job.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

constexpr char kModel[] = R"(
    input_shape: 4
    layers { name: "fc" dense { units: 2 } }
    layers { name: "loss" softmax_cross_entropy {} })";

absl::StatusOr<LoadedJob> LoadWith(const std::string& optimizer) {
  test::TemporaryFolder folder;
  folder.Write("model.textproto", kModel);
  return LoadJob(folder.Write("job.textproto", R"(
      model: "model.textproto"
      data { csv { train: "a" label_column: "0" } }
      global_batch: 12
      max_steps: 5
      optimizer {)" + optimizer + "}"));
}

TEST_CASE("Optimizers and learning rates are checked") {
  struct Case {
    const char* optimizer;
    const char* error;
  };
  for (const Case& c : {
           Case{"learning_rate { base: 1 }", "optimizer: it has no kind"},
           Case{"custom { type: 'lars' } learning_rate { base: 1 }",
                "optimizer.custom.type: no optimizer is registered as \"lars\". Remedy: use one of "
                "sgd {}, momentum"},
           Case{"sgd {}", "optimizer.learning_rate.base: expected a positive number, got 0"},
           Case{"sgd {} learning_rate { base: -1 }", "learning_rate.base: expected a positive"},
           Case{"sgd {} learning_rate { base: nan }", "learning_rate.base: expected a positive"},
           Case{"sgd {} learning_rate { base: 1e39 }", "learning_rate.base: expected a positive"},
           Case{"momentum { momentum: 1 } learning_rate { base: 1 }",
                "optimizer.momentum.momentum"},
           Case{"adam { beta1: 1.5 } learning_rate { base: 1 }", "optimizer.adam.beta1: expected"},
           Case{"adam { beta2: -1 } learning_rate { base: 1 }", "optimizer.adam.beta2: expected"},
           Case{"adam { epsilon: -1 } learning_rate { base: 1 }", "optimizer.adam.epsilon"},
           Case{"sgd {} learning_rate { base: 1 exponential { decay_steps: 5 } }", "decay_rate"},
           Case{"sgd {} learning_rate { base: 1 exponential { decay_rate: 0.5 } }", "decay_steps"},
           Case{"sgd {} learning_rate { base: 1 cosine { } }", "cosine.decay_steps"},
           Case{"sgd {} learning_rate { base: 1 cosine { decay_steps: 9 alpha: 2 } }", "alpha"},
           Case{"sgd {} learning_rate { piecewise { boundaries: [5] values: [1] } }",
                "expected one more than the 1 boundaries, got 1"},
           Case{"sgd {} learning_rate { piecewise { boundaries: [5, 5] values: [1, 1, 1] } }",
                "expected ascending steps from 0 on, got 5 after 5"},
           Case{"sgd {} learning_rate { piecewise { boundaries: [-5] values: [1, 1] } }",
                "expected ascending steps from 0 on, got -5."},
           Case{"sgd {} learning_rate { piecewise { boundaries: [5] values: [1, 0] } }",
                "piecewise.values: expected a positive number"},
           Case{"sgd {} learning_rate { base: 1 piecewise { values: [1] } }",
                "learning_rate.base: piecewise.values replace it"},
           Case{"sgd {} learning_rate { base: 1 natural_exp { decay_steps: 9 } }",
                "learning_rate.natural_exp.decay_rate: expected a positive number, got 0"},
           Case{"sgd {} learning_rate { base: 1 inverse_time { decay_rate: 1 decay_steps: -2 } }",
                "learning_rate.inverse_time.decay_steps: expected"},
           Case{"sgd {} learning_rate { base: 1 polynomial {} }", "polynomial.decay_steps"},
           Case{"sgd {} learning_rate { base: 1 polynomial { decay_steps: 5 power: 0 } }",
                "polynomial.power: expected a positive number, got 0"},
           Case{"sgd {} learning_rate { base: 1 polynomial { decay_steps: 5 "
                "end_learning_rate: -1 } }",
                "polynomial.end_learning_rate: expected a number from 0 on, got -1"},
           Case{"sgd {} learning_rate { base: 1 warm_up {} }", "warm_up.steps: expected"},
           Case{"sgd {} learning_rate { base: 1 warm_up { steps: 2 start: nan } }",
                "warm_up.start: expected"},
           Case{"adam { epsilon: 0 } learning_rate { base: 1 }",
                "adam.epsilon: expected a positive number, got 0"},
           Case{"adam { weight_decay: -1 } learning_rate { base: 1 }", "adam.weight_decay"},
           Case{"adagrad { initial_accumulator_value: 0 } learning_rate { base: 1 }",
                "adagrad.initial_accumulator_value: expected a positive number, got 0"},
           Case{"adadelta { rho: 1 } learning_rate { base: 1 }", "adadelta.rho: expected"},
           Case{"adadelta { epsilon: 0 } learning_rate { base: 1 }", "adadelta.epsilon: expected"},
           Case{"rmsprop { decay: 1 } learning_rate { base: 1 }", "rmsprop.decay: expected"},
           Case{"rmsprop { momentum: -1 } learning_rate { base: 1 }", "rmsprop.momentum: expected"},
           Case{"rmsprop { epsilon: -1 } learning_rate { base: 1 }", "rmsprop.epsilon: expected"},
           Case{"ftrl { learning_rate_power: 0.5 } learning_rate { base: 1 }",
                "ftrl.learning_rate_power: expected a number up to 0, got 0.5"},
           Case{"ftrl { initial_accumulator_value: -1 } learning_rate { base: 1 }",
                "ftrl.initial_accumulator_value: expected a number from 0 on, got -1"},
           Case{"ftrl { l1_regularization_strength: inf } learning_rate { base: 1 }",
                "ftrl.l1_regularization_strength: expected"},
           Case{"ftrl { beta: -2 } learning_rate { base: 1 }", "ftrl.beta: expected"},
       }) {
    CAPTURE(c.optimizer);
    const auto loaded = LoadWith(c.optimizer);
    REQUIRE_FALSE(loaded.ok());
    CHECK(ExitCodeFor(loaded.status()) == ExitCode::kBadConfiguration);
    CHECK_THAT(std::string(loaded.status().message()), Contains(c.error));
    CHECK_THAT(std::string(loaded.status().message()), Contains("Remedy: "));
  }
}

TEST_CASE("Clipping and averages are checked") {
  struct Case {
    const char* field;
    const char* error;
  };
  for (const Case& c : {
           Case{"clipping {}", "optimizer.clipping: it has no kind"},
           Case{"clipping { value: 0 }", "clipping.value: expected a positive number, got 0"},
           Case{"clipping { norm: -1 }", "clipping.norm: expected a positive number"},
           Case{"clipping { global_norm: inf }", "clipping.global_norm: expected a positive"},
           Case{"variable_averages {}",
                "variable_averages.decay: expected a number between 0 and 1, got 0"},
           Case{"variable_averages { decay: 1 }", "variable_averages.decay: expected"},
           Case{"variable_averages { decay: nan }", "variable_averages.decay: expected"},
           Case{"variable_averages { decay: 0.9 only: ['fc/bias', 'fc/bias'] }",
                "variable_averages.only: variable \"fc/bias\" comes twice"},
       }) {
    CAPTURE(c.field);
    const auto loaded = LoadWith(std::string("sgd {} learning_rate { base: 1 } ") + c.field);
    REQUIRE_FALSE(loaded.ok());
    CHECK_THAT(std::string(loaded.status().message()), Contains(c.error));
    CHECK_THAT(std::string(loaded.status().message()), Contains("Remedy: "));
  }
}

OptimizerDef Filled(const std::string& optimizer) {
  const auto loaded = LoadWith(optimizer +
                               " learning_rate { base: 1 polynomial { "
                               "decay_steps: 5 } }");
  REQUIRE(loaded.ok());
  return loaded->job.optimizer();
}

TEST_CASE("Hyper-parameters that are not given are TensorFlow's") {
  CHECK(Filled("adagrad {}").adagrad().initial_accumulator_value() == .1f);
  CHECK(Filled("adadelta {}").adadelta().rho() == .95f);
  CHECK(Filled("adadelta {}").adadelta().epsilon() == 1e-8f);
  CHECK(Filled("rmsprop {}").rmsprop().decay() == .9f);
  CHECK(Filled("rmsprop {}").rmsprop().epsilon() == 1e-10f);
  CHECK(Filled("adam {}").adam().beta1() == .9f);
  CHECK(Filled("adam {}").adam().beta2() == .999f);
  CHECK(Filled("ftrl {}").ftrl().learning_rate_power() == -.5f);
  CHECK(Filled("ftrl {}").ftrl().initial_accumulator_value() == .1f);
  CHECK(Filled("sgd {}").learning_rate().polynomial().end_learning_rate() == .0001f);
  CHECK(Filled("sgd {}").learning_rate().polynomial().power() == 1);
}

TEST_CASE("A zero that is given is kept where it makes sense") {
  CHECK(Filled("adam { beta1: 0 }").adam().beta1() == 0);
  CHECK(Filled("ftrl { learning_rate_power: 0 }").ftrl().learning_rate_power() == 0);
  CHECK(Filled("ftrl { initial_accumulator_value: 0 }").ftrl().initial_accumulator_value() == 0);
  CHECK(Filled("rmsprop { decay: 0 }").rmsprop().decay() == 0);
}

}  // namespace
}  // namespace lockstep
