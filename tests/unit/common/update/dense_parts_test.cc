// Gradients that lie in pieces of messages, and ranges that are made before the others: the bits
// are those of gradients in one piece, made together.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"
#include "common/update/dense_update.h"
#include "tests/support/payload_of.h"
#include "tests/unit/common/optimizer/all_rules.h"

namespace lockstep {
namespace {

constexpr int64_t kSteps = 2;
// Two whole ranges and a third with an odd end.
constexpr int64_t kElements = 2 * DenseUpdate::kRangeBytes / sizeof(float) + 1003;

Tensor RandomTensor(uint32_t seed, DType dtype) {
  Tensor values(DType::kFloat32, Shape({kElements}));
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(0.1f, 2);
  for (float& value : values.as<float>()) value = any(random);
  if (dtype == DType::kFloat32) return values;
  Tensor narrow(dtype, values.shape());
  Narrow(values.as<float>(), dtype, narrow.data());
  return narrow;
}

std::shared_ptr<GradientParts> PartsOf(const Tensor& gradient, size_t cut) {
  auto parts = std::make_shared<GradientParts>(gradient.dtype(), gradient.shape(),
                                               DenseUpdate::RangeElements(DType::kFloat32));
  const auto bytes = gradient.view().bytes();
  parts->Add(0, bytes.size(), lockstep::test::PayloadOf(bytes, cut), 0, [](size_t) {});
  return parts;
}

struct Way {
  std::vector<DType> types;   // of the gradients
  std::vector<size_t> cuts;   // of each into pieces; 0: in one
  std::vector<size_t> early;  // ranges
  bool trainable = true;
};

// The values, their halves and the slots after some steps.
std::vector<Tensor> Trained(const UpdateRule& rule, const Way& way) {
  std::vector<Tensor> slots;
  for (size_t i = 0; i < rule.slots().size(); ++i) {
    slots.push_back(RandomTensor(static_cast<uint32_t>(90 + i), DType::kFloat32));
  }
  Variable variable("w", way.trainable, RandomTensor(80, DType::kFloat32), GlobalStep(0),
                    std::move(slots));
  variable.Narrowed(variable.newest(), DType::kBFloat16);
  const std::vector<float> scalars = InitialScalars(rule);
  for (int64_t step = 0; step < kSteps; ++step) {
    std::vector<Gradient> held;
    DenseUpdate::GradientSources gradients;
    for (uint32_t worker = 0; worker < way.types.size(); ++worker) {
      const auto seed = static_cast<uint32_t>(step) * 10 + worker;
      Gradient gradient{RandomTensor(seed, way.types[worker])};
      if (way.cuts[worker] > 0) {
        gradient.parts = PartsOf(std::exchange(gradient.value, {}), way.cuts[worker]);
      }
      gradients.push_back(SourceOf(gradient));
      held.push_back(std::move(gradient));
    }
    DenseUpdate update(GlobalStep(step), 0.1f, rule, scalars, &variable);
    for (const size_t range : way.early) {
      CHECK(update.ClaimEarly(range));
      CHECK_FALSE(update.ClaimEarly(range));
      update.MakeEarly(range, gradients);
    }
    update.SetGradients(gradients, static_cast<int>(gradients.size()));
    for (size_t range = 0; range < update.num_ranges(); ++range) update.Make(range);
    variable.Publish(update.Finish());
  }
  std::vector<Tensor> result;
  result.push_back(variable.newest()->Clone());
  result.push_back(variable.Narrowed(variable.newest(), DType::kBFloat16)->Clone());
  for (const MutableTensorView& slot : variable.slots()) {
    Tensor copy(slot.dtype, slot.shape);
    Copy(slot, copy.view());
    result.push_back(std::move(copy));
  }
  return result;
}

bool AreSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) {
    return x.num_bytes() == y.num_bytes() && std::memcmp(x.data(), y.data(), x.num_bytes()) == 0;
  });
}

TEST_CASE("for every rule, gradients in pieces and early ranges change no bit") {
  const std::vector<DType> floats(3, DType::kFloat32);
  for (const auto& [name, rule] : lockstep::test::AllRules()) {
    CAPTURE(name);
    const auto expected = Trained(*rule, {floats, {0, 0, 0}, {}});
    CHECK(AreSame(Trained(*rule, {floats, {1 << 16, 777, 5}, {}}), expected));
    CHECK(AreSame(Trained(*rule, {floats, {0, 65'537, 0}, {1}}), expected));
    CHECK(AreSame(Trained(*rule, {floats, {0, 0, 0}, {2, 0}}), expected));
    CHECK(AreSame(Trained(*rule, {floats, {9'999, 9'999, 9'999}, {2, 1, 0}}), expected));
  }
}

TEST_CASE("gradients of several widths may lie in pieces, too") {
  const std::vector<DType> types = {DType::kBFloat16, DType::kFloat32, DType::kFloat16};
  const auto rule = MakeMomentum({.9f, false});
  const auto expected = Trained(*rule, {types, {0, 0, 0}, {}});
  CHECK(AreSame(Trained(*rule, {types, {33'333, 33'333, 33'333}, {0, 2}}), expected));
}

TEST_CASE("a statistic is the mean of gradients in pieces") {
  const std::vector<DType> floats(2, DType::kFloat32);
  const auto rule = MakeSgd();
  const auto expected = Trained(*rule, {floats, {0, 0}, {}, false});
  CHECK(AreSame(Trained(*rule, {floats, {4'096, 100'001}, {}, false}), expected));
}

TEST_CASE("what has been made early is there before the rest") {
  Variable variable("w", true, RandomTensor(1, DType::kFloat32), GlobalStep(0), {});
  const auto rule = MakeSgd();
  DenseUpdate update(GlobalStep(0), 0.5f, *rule, {}, &variable);
  CHECK(update.ClaimEarly(1));
  CHECK(update.IsEarly(1));
  CHECK_FALSE(update.IsEarly(0));
  const Tensor gradient = RandomTensor(2, DType::kFloat32);
  const GradientSource gradients[] = {{gradient.view(), nullptr}};
  update.MakeEarly(1, gradients);
  const ByteRange made = update.BytesOf(1);
  CHECK(made == ByteRange{DenseUpdate::kRangeBytes, 2 * DenseUpdate::kRangeBytes});
  CHECK(update.BytesOf(2).end == variable.num_bytes());
  const NextValue next = update.Unfinished();
  for (size_t i = made.begin / sizeof(float); i < made.end / sizeof(float); ++i) {
    const float expected = variable.newest()->as<float>()[i] - 0.5f * gradient.as<float>()[i];
    REQUIRE(next.value->as<float>()[i] == expected);
  }
}

}  // namespace
}  // namespace lockstep
