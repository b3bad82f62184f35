#include <catch2/catch.hpp>
#include <functional>

#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"
#include "tests/unit/common/optimizer/trained.h"

namespace lockstep {
namespace {

using test::CheckClose;
using test::Trained;

struct NamedRule {
  const char* name;
  std::function<std::unique_ptr<const UpdateRule>()> make;
};

const NamedRule kRules[] = {
    {"sgd", [] { return MakeSgd(); }},
    {"momentum",
     [] {
       return MakeMomentum({.9f, false});
     }},
    {"nesterov",
     [] {
       return MakeMomentum({.9f, true});
     }},
    {"adagrad", [] { return MakeAdagrad({}); }},
    {"adadelta", [] { return MakeAdadelta({}); }},
    {"rmsprop",
     [] {
       return MakeRmsProp({.9f, .5f, 1e-3f, false});
     }},
    {"centered rmsprop",
     [] {
       return MakeRmsProp({.9f, .5f, 1e-3f, true});
     }},
    {"adam", [] { return MakeAdam({}); }},
    {"lazy adam", [] { return MakeAdam({.lazy = true}); }},
    {"adamw", [] { return MakeAdam({.weight_decay = .1f}); }},
    {"lazy adamw", [] { return MakeAdam({.lazy = true, .weight_decay = .1f}); }},
    {"ftrl",
     [] {
       return MakeFtrl(
           {.l1_regularization_strength = .01f, .l2_shrinkage_regularization_strength = .1f});
     }},
    {"ftrl with a power", [] { return MakeFtrl({.learning_rate_power = -.7f}); }},
};

std::vector<float> Numbers(int count, int salt) {
  std::vector<float> numbers;
  for (int i = 0; i < count; ++i) {
    numbers.push_back(static_cast<float>((i * 7 + salt * 13) % 41 - 20) / 64.0f + .001f);
  }
  return numbers;
}

TEST_CASE("a gradient that names every row is the dense one, but for rounding") {
  for (const int64_t width : {1, 2, 5}) {
    for (const NamedRule& rule : kRules) {
      CAPTURE(rule.name, width);
      const int rows = 4;
      const std::vector<float> start = Numbers(rows * width, 1);
      Trained<float> dense(rule.make(), start, width);
      Trained<float> sparse(rule.make(), start, width);
      for (int step = 0; step < 5; ++step) {
        const std::vector<float> gradient = Numbers(rows * width, step + 2);
        dense.Step(.1f, gradient);
        sparse.StepRows(.1f, {0, 1, 2, 3}, gradient);
        CheckClose(sparse.value(), dense.value());
      }
    }
  }
}

TEST_CASE("rows that are not named stay as they are, to the bit, where a rule says so") {
  for (const NamedRule& rule : kRules) {
    CAPTURE(rule.name);
    const auto probe = rule.make();
    const std::vector<float> start = Numbers(10, 1);
    Trained<float> variable(rule.make(), start, 2);
    variable.Step(.1f, Numbers(10, 2));  // slots have something to decay
    const std::vector<float> before = variable.value();
    std::vector<std::vector<float>> slots;
    for (int i = 0; i < probe->slots().size(); ++i) slots.push_back(variable.slot(i));
    variable.StepRows(.1f, {1, 4}, {.5f, -.5f, .25f, 1});
    bool untouched = true;
    for (const size_t i : {0, 1, 4, 5, 6, 7}) {
      untouched &= variable.value()[i] == before[i];
      for (int slot = 0; slot < slots.size(); ++slot) {
        untouched &= variable.slot(slot)[i] == slots[slot][i];
      }
    }
    CHECK(untouched == probe->TouchesOnlyRows());
    for (const size_t i : {2, 3, 8, 9}) CHECK(variable.value()[i] != before[i]);
  }
}

TEST_CASE("only Adam that is not lazy moves rows that are not named") {
  for (const NamedRule& rule : kRules) {
    CAPTURE(rule.name);
    const absl::string_view name = rule.name;
    CHECK(rule.make()->TouchesOnlyRows() == (name != "adam" && name != "adamw"));
    CHECK(rule.make()->TakesRepeatedRows() == (name == "sgd"));
  }
}

TEST_CASE("sparse Adam takes missing rows for zeros") {
  const std::vector<float> start = Numbers(8, 1);
  Trained<float> dense(MakeAdam({}), start, 2);
  Trained<float> sparse(MakeAdam({}), start, 2);
  for (int step = 0; step < 6; ++step) {
    const int64_t row = (step * 3) % 4;
    std::vector<float> gradient(8, 0);
    const std::vector<float> part = Numbers(2, step);
    std::ranges::copy(part, gradient.begin() + row * 2);
    dense.Step(.1f, gradient);
    sparse.StepRows(.1f, {row}, part);
    CheckClose(sparse.value(), dense.value());
    CheckClose(sparse.slot(0), dense.slot(0));
    CheckClose(sparse.slot(1), dense.slot(1));
  }
}

TEST_CASE("lazy Adam leaves rows alone, while its powers go on") {
  Trained<float> variable(MakeAdam({.lazy = true}), {1, 1}, 1);
  for (int step = 0; step < 3; ++step) variable.StepRows(.1f, {0}, {.5f});
  CHECK(variable.value()[1] == 1);
  variable.StepRows(.1f, {1}, {.5f});
  // m = 0.1 g and v = 0.001 g^2, with the bias correction of step 4.
  const double alpha = .1 * std::sqrt(1 - std::pow(.999, 4)) / (1 - std::pow(.9, 4));
  CHECK(variable.value()[1] ==
        Approx(1 - alpha * .05 / (std::sqrt(.001 * .25) + 1e-8)).epsilon(1e-4));
}

TEST_CASE("gradient descent takes a repeated row's gradients one after the other") {
  Trained<float> variable(MakeSgd(), {1, 2, 3}, 1);
  variable.StepRows(.5f, {1, 1, 2, 2, 2}, {.5f, 1, 1, 2, 3});
  CHECK(variable.value() == std::vector<float>{1, 2 - .25f - .5f, 3 - .5f - 1 - 1.5f});
}

TEST_CASE("an empty gradient changes what decays by itself, and nothing else") {
  for (const NamedRule& rule : kRules) {
    CAPTURE(rule.name);
    Trained<float> variable(rule.make(), {1, 2}, 1);
    variable.Step(.1f, {.5f, .5f});
    const std::vector<float> before = variable.value();
    variable.StepRows(.1f, {}, {});
    CHECK((variable.value() == before) == rule.make()->TouchesOnlyRows());
  }
}

TEST_CASE("a variable without rows has an update too") {
  for (const NamedRule& rule : kRules) {
    Trained<float> variable(rule.make(), {}, 3);
    variable.StepRows(.1f, {}, {});
    CHECK(variable.value().empty());
  }
}

TEST_CASE("rows of doubles are computed in double") {
  for (const NamedRule& rule : kRules) {
    CAPTURE(rule.name);
    Trained<double> dense(rule.make(), {1, 2, 3, 4}, 2);
    Trained<double> sparse(rule.make(), {1, 2, 3, 4}, 2);
    for (int step = 0; step < 3; ++step) {
      const std::vector<double> gradient = {.1, -.2, .3, .7};
      dense.Step(.1f, gradient);
      sparse.StepRows(.1f, {0, 1}, gradient);
    }
    CheckClose(sparse.value(), dense.value());
  }
}

TEST_CASE("an average follows every row of a sparse update") {
  const auto make = [] { return MakeAveraged(MakeMomentum({.9f, false}), {.decay = .5f}); };
  CHECK_FALSE(make()->TouchesOnlyRows());
  Trained<float> variable(make(), {1, 2}, 1);
  variable.StepRows(1, {0}, {1});
  CHECK(variable.slot(1) == std::vector<float>{.5f, 2});
  variable.StepRows(1, {1}, {1});
  CHECK(variable.slot(1) == std::vector<float>{.25f, 1.5f});
}

}  // namespace
}  // namespace lockstep
