#include "common/optimizer/update_rule.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"
#include "tests/unit/common/optimizer/trained.h"

namespace lockstep {
namespace {

using test::CheckClose;
using test::Trained;

std::vector<float> AfterFiveSteps(std::unique_ptr<const UpdateRule> rule, float learning_rate) {
  Trained<float> variable(std::move(rule), {1.0f});
  std::vector<float> values;
  for (const float gradient : {.1f, -.2f, .3f, 0.f, .05f}) {
    variable.Step(learning_rate, {gradient});
    values.push_back(variable.value()[0]);
  }
  return values;
}

TEST_CASE("five steps give TensorFlow's values to the last bit") {
  CHECK(AfterFiveSteps(MakeSgd(), .5f) ==
        std::vector<float>{.949999988f, 1.04999995f, .899999976f, .899999976f, .875f});
  CHECK(AfterFiveSteps(MakeMomentum({.9f, false}), .5f) ==
        std::vector<float>{.949999988f, 1.005f, .904500008f, .814050019f, .707645059f});
  CHECK(AfterFiveSteps(MakeMomentum({.9f, true}), .5f) ==
        std::vector<float>{.904999971f, 1.05449998f, .814049959f, .732644975f, .611880481f});
  CHECK(AfterFiveSteps(MakeAdam({}), .001f) ==
        std::vector<float>{.999000013f, .999366105f, .999022841f, .998741686f, .998433828f});
  CHECK(AfterFiveSteps(MakeAdam({}), .5f) ==
        std::vector<float>{.50000155f, .683052421f, .511433184f, .370852649f, .216910467f});
  CHECK(AfterFiveSteps(MakeAdam({.9f, .999f, .1f}), .5f) ==
        std::vector<float>{.984673381f, .996761024f, .97860682f, .963742554f, .94734329f});
}

// Where TensorFlow divides by an approximated root, the last digit is its own.
TEST_CASE("five steps give TensorFlow's values where roots are divided by") {
  CheckClose(AfterFiveSteps(MakeAdagrad({}), .5f),
             {.849244356f, 1.10744321f, .801257014f, .801257014f, .750489712f});
  CheckClose(AfterFiveSteps(MakeAdadelta({}), 1),
             {.999552786f, 1.00012136f, .999436915f, .999436915f, .999288738f});
  CheckClose(AfterFiveSteps(MakeRmsProp({}), .5f),
             {.947324634f, 1.05810118f, .884012938f, .884012938f, .85178107f});
  CheckClose(AfterFiveSteps(MakeRmsProp({.9f, .9f, 1e-3f, false}), .5f),
             {.94735384f, 1.01068091f, .893704236f, .788425207f, .661468983f});
  CheckClose(AfterFiveSteps(MakeRmsProp({.9f, .9f, 1e-3f, true}), .5f),
             {.947350919f, 1.01068366f, .893664718f, .788347661f, .661345124f});
  CheckClose(
      AfterFiveSteps(
          MakeFtrl({.l1_regularization_strength = .01f, .l2_regularization_strength = .1f}), .5f),
      {-.0684916824f, .116200112f, -.121129058f, -.121129058f, -.163327217f});
  CheckClose(AfterFiveSteps(MakeFtrl({.l1_regularization_strength = .01f,
                                      .l2_regularization_strength = .1f,
                                      .l2_shrinkage_regularization_strength = .1f}),
                            .5f),
             {-.300154179f, -.033345513f, -.281974018f, -.234173551f, -.236844942f});
  CheckClose(AfterFiveSteps(MakeFtrl({.learning_rate_power = -.7f,
                                      .l1_regularization_strength = .01f,
                                      .l2_regularization_strength = .1f}),
                            .5f),
             {-.0996963605f, .146871567f, -.152111247f, -.152111247f, -.205197081f});
}

std::vector<float> After(int steps, std::unique_ptr<const UpdateRule> rule, float learning_rate,
                         const std::vector<float>& start, const std::vector<float>& gradient) {
  Trained<float> variable(std::move(rule), start);
  for (int step = 0; step < steps; ++step) variable.Step(learning_rate, gradient);
  return variable.value();
}

TEST_CASE("Adagrad and Ftrl give the numbers of TensorFlow's own tests") {
  CheckClose(After(3, MakeAdagrad({}), 3, {1, 2}, {.1f, .1f}), {-1.60260987f, -.602609873f});
  CheckClose(After(3, MakeAdagrad({}), 3, {3, 4}, {.01f, .01f}), {2.71567917f, 3.71567917f});
  const std::vector<float> g0 = {.1f, .2f};
  const std::vector<float> g1 = {.01f, .02f};
  CheckClose(After(3, MakeFtrl({}), 3, {0, 0}, g0), {-2.60260963f, -4.29698515f});
  CheckClose(After(3, MakeFtrl({}), 3, {0, 0}, g1), {-.28432083f, -.56694895f});
  CheckClose(After(3, MakeFtrl({}), 3, {1, 2}, g0), {-2.55607247f, -3.98729396f});
  CheckClose(After(3, MakeFtrl({}), 3, {4, 3}, g1), {-.28232238f, -.56096673f});
  FtrlOptions options{.l1_regularization_strength = .001f};
  CheckClose(After(10, MakeFtrl(options), 3, {1, 2}, g0), {-7.66718769f, -10.91273689f});
  CheckClose(After(10, MakeFtrl(options), 3, {4, 3}, g1), {-.93460727f, -1.86147261f});
  options.l2_regularization_strength = 2;
  CheckClose(After(10, MakeFtrl(options), 3, {1, 2}, g0), {-.24059935f, -.46829352f});
  CheckClose(After(10, MakeFtrl(options), 3, {4, 3}, g1), {-.02406147f, -.04830509f});
  options.l2_shrinkage_regularization_strength = .1f;
  CheckClose(After(10, MakeFtrl(options), 3, {1, 2}, g0), {-.22578995f, -.44345796f});
  CheckClose(After(10, MakeFtrl(options), 3, {4, 3}, g1), {-.14378493f, -.13229476f});
}

TEST_CASE("RMSProp's mean of squares begins at one, and its epsilon is inside the root") {
  Trained<float> variable(MakeRmsProp({.9f, 0, 1, false}), {1, 2});
  variable.Step(2, {.1f, .01f});
  CheckClose(variable.slot(0), {.901f, .90001f});
  CHECK(variable.value()[0] == Approx(1 - .2f / std::sqrt(.901f + 1)));
  variable.Step(2, {.1f, .01f});
  CHECK(variable.slot(0)[0] == Approx(.901f * .9f + .001f));
}

// The same gradients were given to tf.compat.v1.train optimizers of TensorFlow 2.21.0 on a CPU,
// from the same start, with learning rate 0.3; the expected values below are what they printed.
constexpr int kElements = 9;

template <typename T>
std::vector<T> GoldenGradient(int step) {
  std::vector<T> gradient;
  for (int i = 0; i < kElements; ++i) {
    const float base = static_cast<float>((i * 7 + step * 13 + i * step * 3) % 41 - 20) / 64.0f;
    gradient.push_back(base * 1.1f);
  }
  return gradient;
}

template <typename T>
std::vector<T> AfterTwelveSteps(std::unique_ptr<const UpdateRule> rule) {
  std::vector<T> start;
  for (int i = 0; i < kElements; ++i) start.push_back(1.0f + static_cast<float>(i) / 8.0f);
  Trained<T> variable(std::move(rule), start);
  for (int step = 0; step < 12; ++step) variable.Step(.3f, GoldenGradient<T>(step));
  return variable.value();
}

TEST_CASE("twelve steps of vectors agree with a run of TensorFlow 2.21 in float32") {
  CHECK(AfterTwelveSteps<float>(MakeSgd()) ==
        std::vector<float>{0x1.f81478p-1f, 0x1.22a3d8p+0f, 0x1.493d72p+0f, 0x1.6fd70ap+0f,
                           0x1.6051ecp+0f, 0x1.86eb84p+0f, 0x1.e3a3d6p+0f, 0x1.051ebap+1f,
                           0x1.fab84ep+0f});
  CHECK(AfterTwelveSteps<float>(MakeMomentum({.9f, false})) ==
        std::vector<float>{0x1.0bebb6p+0f, 0x1.f5a458p-1f, 0x1.8f5f62p+0f, 0x1.0bc7fep+1f,
                           0x1.a9a3e8p-1f, 0x1.7175ecp-1f, 0x1.4869dp+1f, 0x1.65895p+1f,
                           0x1.0144e6p+1f});
  CHECK(AfterTwelveSteps<float>(MakeMomentum({.9f, true})) ==
        std::vector<float>{0x1.06c4cap+0f, 0x1.012dccp+0f, 0x1.90ace4p+0f, 0x1.0a85ecp+1f,
                           0x1.8c842ap-1f, 0x1.6d8dfcp-1f, 0x1.4fcabep+1f, 0x1.6ee71ap+1f,
                           0x1.fd0128p+0f});
  CHECK(AfterTwelveSteps<float>(MakeAdam({})) ==
        std::vector<float>{0x1.80cabcp+0f, 0x1.461444p+0f, 0x1.b41bap+0f, 0x1.07f118p+1f,
                           0x1.14d128p-1f, 0x1.5ab1e8p-2f, 0x1.5d1c14p+1f, 0x1.88382ap+1f,
                           0x1.706822p+1f});
  CHECK(AfterTwelveSteps<float>(MakeAdam({.8f, .99f, 1e-3f})) ==
        std::vector<float>{0x1.4ddd78p+0f, 0x1.3aee7p+0f, 0x1.b39fc4p+0f, 0x1.fdb2c8p+0f,
                           0x1.3c558ap-1f, 0x1.12608p-1f, 0x1.4ec47cp+1f, 0x1.774624p+1f,
                           0x1.503832p+1f});
}

TEST_CASE("twelve steps of vectors agree with a run of TensorFlow 2.21 in float64") {
  CHECK(AfterTwelveSteps<double>(MakeSgd()) ==
        std::vector<double>{0x1.f8147af11eb86p-1, 0x1.22a3d71b5c290p+0, 0x1.493d70d88f5c5p+0,
                            0x1.6fd70a71c28f8p+0, 0x1.6051eb62147aep+0, 0x1.86eb8510e147bp+0,
                            0x1.e3a3d72c8f5c3p+0, 0x1.051eb861ae148p+1, 0x1.fab851efae148p+0});
  CHECK(AfterTwelveSteps<double>(MakeMomentum({.9f, false})) ==
        std::vector<double>{0x1.0bebb3e6222c5p+0, 0x1.f5a45372f8213p-1, 0x1.8f5f63edaf301p+0,
                            0x1.0bc8013edcf3bp+1, 0x1.a9a3ec84f6320p-1, 0x1.7175e750f5333p-1,
                            0x1.4869cfc476df7p+1, 0x1.65894dc283ac9p+1, 0x1.0144e6d67d643p+1});
  CHECK(AfterTwelveSteps<double>(MakeMomentum({.9f, true})) ==
        std::vector<double>{0x1.06c4c5c2e96f5p+0, 0x1.012dc9845e274p+0, 0x1.90ace441ed45ep+0,
                            0x1.0a85ec998b55cp+1, 0x1.8c842c2b2b5dbp-1, 0x1.6d8df4a3a3475p-1,
                            0x1.4fcac003bb8a8p+1, 0x1.6ee717c820dd9p+1, 0x1.fd0124a3f2435p+0});
  CHECK(AfterTwelveSteps<double>(MakeAdam({})) ==
        std::vector<double>{0x1.80cabeb7a99c2p+0, 0x1.4614440f6bffcp+0, 0x1.b41b9f9c88d0ap+0,
                            0x1.07f118a7c1178p+1, 0x1.14d12af39fbecp-1, 0x1.5ab1e6dba9ac4p-2,
                            0x1.5d1c1705643f6p+1, 0x1.88382b2124a7fp+1, 0x1.706823fb33a41p+1});
}

TEST_CASE("momentum's slot is the decaying sum of gradients") {
  Trained<float> variable(MakeMomentum({.9f, false}), {1.0f, 2.0f});
  variable.Step(2.0f, {.1f, .1f});
  CHECK(variable.slot(0) == std::vector<float>{.1f, .1f});
  CHECK(variable.value()[0] == Approx(.8f));
  CHECK(variable.value()[1] == Approx(1.8f));
  variable.Step(2.0f, {.1f, .1f});
  CHECK(variable.slot(0)[0] == Approx(.19f));
  CHECK(variable.value()[0] == Approx(.8f - .38f));
}

TEST_CASE("Adam's powers advance once per step, in float32 for every dtype") {
  Trained<double> variable(MakeAdam({}), {1.0});
  CHECK(variable.scalars() == std::vector<float>{.9f, .999f});
  float beta1_power = .9f;
  float beta2_power = .999f;
  for (int step = 0; step < 20; ++step) {
    variable.Step(.1f, {.5});
    beta1_power *= .9f;
    beta2_power *= .999f;
  }
  CHECK(variable.scalars() == std::vector<float>{beta1_power, beta2_power});
}

TEST_CASE("a rule names itself, its slots and its scalars as TensorFlow does") {
  struct Case {
    std::unique_ptr<const UpdateRule> rule;
    std::string name;
    std::vector<SlotSpec> slots;
  };
  Case cases[] = {
      {MakeSgd(), "sgd", {}},
      {MakeMomentum({}), "momentum", {{"momentum", 0}}},
      {MakeAdagrad({.5f}), "adagrad", {{"accumulator", .5f}}},
      {MakeAdadelta({}), "adadelta", {{"accum", 0}, {"accum_update", 0}}},
      {MakeRmsProp({}), "rmsprop", {{"rms", 1}, {"momentum", 0}}},
      {MakeRmsProp({.centered = true}), "rmsprop", {{"rms", 1}, {"momentum", 0}, {"mg", 0}}},
      {MakeAdam({}), "adam", {{"m", 0}, {"v", 0}}},
      {MakeFtrl({.initial_accumulator_value = .25f}), "ftrl", {{"accum", .25f}, {"linear", 0}}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    CHECK(c.rule->name() == absl::string_view(c.name));
    REQUIRE(c.rule->slots().size() == c.slots.size());
    for (size_t i = 0; i < c.slots.size(); ++i) {
      CHECK(c.rule->slots()[i].name == c.slots[i].name);
      CHECK(c.rule->slots()[i].initial_value == c.slots[i].initial_value);
      CHECK_FALSE(c.rule->slots()[i].starts_as_variable);
    }
  }
  const auto adam = MakeAdam({});
  CHECK(adam->scalars()[0].name == "beta1_power");
  CHECK(adam->scalars()[1].name == "beta2_power");
}

TEST_CASE("decoupled weight decay takes its part before Adam's step") {
  for (const float decay : {.0f, .01f, .5f}) {
    CAPTURE(decay);
    Trained<float> plain(MakeAdam({}), {2, -3});
    Trained<float> decayed(MakeAdam({.weight_decay = decay}), {2, -3});
    plain.Step(.1f, {1, 1});
    decayed.Step(.1f, {1, 1});
    CheckClose(decayed.value(),
               {plain.value()[0] - 2 * decay * .1f, plain.value()[1] + 3 * decay * .1f});
    CHECK(decayed.slot(0) == plain.slot(0));
  }
}

TEST_CASE("Ftrl's beta adds to the strength of l2") {
  CheckClose(After(4, MakeFtrl({.l2_regularization_strength = .1f, .beta = .3f}), .5f, {1}, {.2f}),
             After(4, MakeFtrl({.l2_regularization_strength = .4f}), .5f, {1}, {.2f}));
}

TEST_CASE("the new value may take the old one's place, and an update of a range is that range") {
  const auto rule = MakeAdam({});
  const std::vector<float> gradient = GoldenGradient<float>(3);
  std::vector<float> whole(kElements, 1.0f), m(kElements), v(kElements);
  std::vector<float> parts = whole, part_m = m, part_v = v;
  const std::vector<float> scalars = InitialScalars(*rule);
  const auto apply = [&](std::vector<float>& w, std::vector<float>& m, std::vector<float>& v,
                         int begin, int end) {
    const Shape shape({end - begin});
    const MutableTensorView value{DType::kFloat32, shape, w.data() + begin};
    const MutableTensorView slots[] = {{DType::kFloat32, shape, m.data() + begin},
                                       {DType::kFloat32, shape, v.data() + begin}};
    const TensorView of_range{DType::kFloat32, shape, gradient.data() + begin};
    rule->Apply({.old_value = value,
                 .gradients = absl::MakeConstSpan(&of_range, 1),
                 .new_value = value,
                 .slots = slots,
                 .learning_rate = .1f,
                 .scalars = scalars});
  };
  apply(whole, m, v, 0, kElements);
  apply(parts, part_m, part_v, 0, 4);
  apply(parts, part_m, part_v, 4, kElements);
  apply(parts, part_m, part_v, 2, 2);
  CHECK(whole == parts);
  CHECK(m == part_m);
  CHECK(v == part_v);
}

TEST_CASE("a gradient that is not finite shows in the value instead of being hidden") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (auto make : {+[] { return MakeSgd(); },
                    +[] {
                      return MakeMomentum({.9f, true});
                    },
                    +[] { return MakeAdam({}); }}) {
    Trained<float> variable(make(), {1.0f, 1.0f});
    variable.Step(.1f, {nan, 0.0f});
    CHECK(std::isnan(variable.value()[0]));
    CHECK(variable.value()[1] == 1.0f);
  }
}

}  // namespace
}  // namespace lockstep
