#include "common/optimizer_proto/update_rule_of.h"

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"

namespace lockstep {
namespace {

// A number after three steps that every hyper-parameter takes part in.
float Trial(const UpdateRule& rule) {
  const Shape shape({2});
  Tensor value(DType::kFloat32, shape);
  value.as<float>()[0] = 1;
  value.as<float>()[1] = -2;
  std::vector<Tensor> slots;
  std::vector<MutableTensorView> views;
  for (const SlotSpec& spec : rule.slots()) {
    slots.emplace_back(DType::kFloat32, shape);
    for (float& element : slots.back().as<float>()) element = spec.initial_value;
    views.push_back(slots.back().view());
  }
  std::vector<float> scalars = InitialScalars(rule);
  const float gradient[] = {.5f, -.25f};
  const TensorView view{DType::kFloat32, shape, gradient};
  for (int64_t step = 0; step < 3; ++step) {
    rule.Apply({.old_value = value.view(),
                .gradients = absl::MakeConstSpan(&view, 1),
                .new_value = value.view(),
                .slots = views,
                .learning_rate = .1f,
                .scalars = scalars,
                .version = step + 1});
    rule.AdvanceScalars(absl::MakeSpan(scalars));
  }
  return value.as<float>()[0] * 3 + value.as<float>()[1];
}

std::unique_ptr<const UpdateRule> RuleOf(const std::string& text) {
  OptimizerDef optimizer;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &optimizer));
  auto rule = UpdateRuleOf(optimizer);
  REQUIRE(rule.ok());
  return *std::move(rule);
}

TEST_CASE("a job's optimizer becomes the rule of its kind, with every number in its place") {
  struct Case {
    std::string text;
    std::unique_ptr<const UpdateRule> rule;
  };
  const Case cases[] = {
      {"sgd {}", MakeSgd()},
      {"momentum { momentum: 0.8 }", MakeMomentum({.8f, false})},
      {"momentum { momentum: 0.8 nesterov: true }", MakeMomentum({.8f, true})},
      {"adagrad {}", MakeAdagrad({})},
      {"adagrad { initial_accumulator_value: 0.5 }", MakeAdagrad({.5f})},
      {"adadelta {}", MakeAdadelta({})},
      {"adadelta { rho: 0.5 epsilon: 0.25 }", MakeAdadelta({.5f, .25f})},
      {"rmsprop {}", MakeRmsProp({})},
      {"rmsprop { decay: 0.5 momentum: 0.25 epsilon: 0.125 }", MakeRmsProp({.5f, .25f, .125f})},
      {"rmsprop { decay: 0.5 epsilon: 0.125 centered: true }", MakeRmsProp({.5f, 0, .125f, true})},
      {"adam {}", MakeAdam({})},
      {"adam { beta1: 0.5 beta2: 0.25 epsilon: 0.125 weight_decay: 0.375 }",
       MakeAdam({.5f, .25f, .125f, false, .375f})},
      {"ftrl {}", MakeFtrl({})},
      {"ftrl { learning_rate_power: -0.75 initial_accumulator_value: 0.5 "
       "l1_regularization_strength: 0.03125 l2_regularization_strength: 0.25 "
       "l2_shrinkage_regularization_strength: 0.125 beta: 0.0625 }",
       MakeFtrl({-.75f, .5f, .03125f, .25f, .125f, .0625f})},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto rule = RuleOf(c.text);
    CHECK(rule->name() == c.rule->name());
    CHECK(Trial(*rule) == Trial(*c.rule));
  }
  OptimizerDef custom;
  custom.mutable_custom()->set_type("lars");
  CHECK_THAT(std::string(UpdateRuleOf(custom).status().message()),
             Catch::Matchers::Contains("custom.type: no optimizer is registered as \"lars\""));
  CHECK(RuleOf("adam { lazy: true }")->TouchesOnlyRows());
  CHECK_FALSE(RuleOf("adam {}")->TouchesOnlyRows());
}

}  // namespace
}  // namespace lockstep
