#include "common/optimizer/update_rule.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <memory>

#include "common/optimizer/adam.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"

namespace lockstep {
namespace {

// A variable that is updated step by step, with slots and scalars kept as a parameter server does.
template <typename T>
class Trained {
 public:
  Trained(std::unique_ptr<const UpdateRule> rule, std::vector<T> value)
      : rule_(std::move(rule)), scalars_(InitialScalars(*rule_)) {
    const Shape shape({static_cast<int64_t>(value.size())});
    value_ = Tensor(DTypeOf<T>(), shape);
    next_ = Tensor(DTypeOf<T>(), shape);
    std::ranges::copy(value, value_.template as<T>().begin());
    for (const SlotSpec& spec : rule_->slots()) {
      slots_.emplace_back(DTypeOf<T>(), shape);
      std::ranges::fill(slots_.back().template as<T>(), spec.initial_value);
      views_.push_back(slots_.back().view());
    }
  }

  void Step(float learning_rate, const std::vector<T>& gradient) {
    const TensorView view{DTypeOf<T>(), value_.shape(), gradient.data()};
    rule_->Apply({value_.view(), view, next_.view(), views_, learning_rate, scalars_});
    std::swap(value_, next_);
    rule_->AdvanceScalars(absl::MakeSpan(scalars_));
  }

  std::vector<T> value() const {
    const auto elements = value_.template as<T>();
    return {elements.begin(), elements.end()};
  }
  std::vector<T> slot(int index) const {
    const auto elements = slots_[index].template as<T>();
    return {elements.begin(), elements.end()};
  }
  const std::vector<float>& scalars() const { return scalars_; }

 private:
  const std::unique_ptr<const UpdateRule> rule_;
  std::vector<float> scalars_;
  Tensor value_;
  Tensor next_;
  std::vector<Tensor> slots_;
  std::vector<MutableTensorView> views_;
};

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

TEST_CASE("a rule names itself, its slots and its scalars for checkpoints") {
  CHECK(MakeSgd()->name() == "sgd");
  CHECK(MakeSgd()->slots().empty());
  CHECK(MakeMomentum({})->slots()[0].name == "momentum");
  const auto adam = MakeAdam({});
  CHECK(adam->slots().size() == 2);
  CHECK(adam->slots()[0].name == "adam_m");
  CHECK(adam->slots()[1].name == "adam_v");
  CHECK(adam->scalars()[0].name == "beta1_power");
  CHECK(adam->scalars()[1].name == "beta2_power");
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
    rule->Apply({value, TensorView{DType::kFloat32, shape, gradient.data() + begin}, value, slots,
                 .1f, scalars});
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
