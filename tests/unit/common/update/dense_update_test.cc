#include "common/update/dense_update.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"

namespace lockstep {
namespace {

Tensor Of(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(values.size())}));
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

std::vector<float> Values(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

std::vector<Gradient> Gradients(const std::vector<std::vector<float>>& values) {
  std::vector<Gradient> gradients;
  for (const std::vector<float>& gradient : values) gradients.push_back({Of(gradient)});
  return gradients;
}

DenseUpdate UpdateOf(const std::vector<Gradient>& gradients, const UpdateRule& rule,
                     float learning_rate, Variable* variable) {
  DenseUpdate update(variable->newest_version(), learning_rate, rule, {}, variable);
  DenseUpdate::GradientSources sources;
  for (const Gradient& gradient : gradients) sources.push_back(SourceOf(gradient));
  update.SetGradients(std::move(sources), static_cast<int>(gradients.size()));
  return update;
}

NextValue NextOf(const std::vector<std::vector<float>>& values, const UpdateRule& rule,
                 float learning_rate, Variable* variable) {
  const std::vector<Gradient> gradients = Gradients(values);
  DenseUpdate update = UpdateOf(gradients, rule, learning_rate, variable);
  for (size_t range = 0; range < update.num_ranges(); ++range) update.Make(range);
  return update.Finish();
}

TEST_CASE("a trained variable moves by the mean of its gradients") {
  Variable variable("w", true, Of({1, 2}), GlobalStep(0), {});
  const auto rule = MakeSgd();
  const auto next = NextOf({{1, 2}, {3, 6}}, *rule, 0.5f, &variable);
  CHECK(Values(*next.value) == std::vector<float>{0, 0});
  CHECK(Values(*variable.newest()) == std::vector<float>{1, 2});
}

TEST_CASE("slots move with the variable") {
  std::vector<Tensor> slots;
  slots.push_back(Of({10}));
  Variable variable("w", true, Of({1}), GlobalStep(0), std::move(slots));
  const auto rule = MakeMomentum({0.5f, false});
  const auto next = NextOf({{1}}, *rule, 1.0f, &variable);
  CHECK(variable.slots()[0].as<float>()[0] == 6);
  CHECK(Values(*next.value) == std::vector<float>{-5});
}

TEST_CASE("a statistic becomes the mean, whatever the optimizer and the learning rate") {
  Variable variable("mean", false, Of({100, 100}), GlobalStep(0), {});
  const auto rule = MakeMomentum({0.5f, false});
  const auto next = NextOf({{1, 4}, {3, 8}}, *rule, 123.0f, &variable);
  CHECK(Values(*next.value) == std::vector<float>{2, 6});
}

// The value and the momentum after two steps of three gradients on so many threads.
std::vector<std::vector<float>> AfterTwoSteps(int threads, bool trainable) {
  constexpr size_t kElements = 200003;
  const auto wave = [](float phase) {
    std::vector<float> values(kElements);
    for (size_t i = 0; i < kElements; ++i) values[i] = std::sin(static_cast<float>(i) + phase);
    return values;
  };
  std::vector<Tensor> slots;
  slots.push_back(Of(wave(9)));
  Variable variable("w", trainable, Of(wave(8)), GlobalStep(0), std::move(slots));
  const auto rule = MakeMomentum({0.9f, true});
  ThreadPool pool(threads);
  for (int64_t step = 0; step < 2; ++step) {
    const std::vector<Gradient> gradients = Gradients({wave(1), wave(2), wave(3)});
    DenseUpdate update = UpdateOf(gradients, *rule, 0.1f, &variable);
    pool.ForRanges(update.num_ranges(), 1, [&](size_t range, size_t) { update.Make(range); });
    variable.Publish(update.Finish());
  }
  return {Values(*variable.newest()),
          Values(*variable.At(GlobalStep(1))),
          {variable.slots()[0].as<float>().begin(), variable.slots()[0].as<float>().end()}};
}

TEST_CASE("any number of threads gives the same bits") {
  for (const bool trainable : {true, false}) {
    const auto alone = AfterTwoSteps(1, trainable);
    for (const int threads : {2, 7}) CHECK(AfterTwoSteps(threads, trainable) == alone);
  }
}

TEST_CASE("variables without elements have a next value too") {
  Variable variable("w", true, Of({}), GlobalStep(0), {});
  const auto next = NextOf({{}, {}}, *MakeSgd(), 1.0f, &variable);
  CHECK(next.value->num_elements() == 0);
}

}  // namespace
}  // namespace lockstep
