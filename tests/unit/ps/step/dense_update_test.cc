#include "ps/step/dense_update.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>

#include "common/base/thread_pool.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/sgd.h"

namespace lockstep::ps {
namespace {

Tensor Of(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(values.size())}));
  std::ranges::copy(values, tensor.as<float>().begin());
  return tensor;
}

std::vector<float> Values(const Tensor& tensor) {
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

TakenGradients TakenOf(std::vector<std::vector<float>> gradients, int64_t step,
                       float learning_rate) {
  TakenGradients taken{0, GlobalStep(step), 1, learning_rate, {}};
  uint32_t worker = 0;
  for (const std::vector<float>& gradient : gradients) {
    taken.gradients.push_back({WorkerIndex(worker++), PushSeq(1), GlobalStep(step), Of(gradient)});
  }
  return taken;
}

DenseAccumulator AccumulatorOf(const Variable& variable) {
  return DenseAccumulator(variable.dtype(), PartialShape(variable.shape()), Reduction::kMean);
}

NextValue NextOf(const TakenGradients& taken, const UpdateRule& rule, Variable* variable,
                 DenseAccumulator* accumulator) {
  DenseUpdate update(taken, rule, {}, variable, accumulator);
  for (size_t range = 0; range < update.num_ranges(); ++range) update.Make(range);
  return update.Finish();
}

TEST_CASE("a trained variable moves by the mean of its gradients") {
  Variable variable("w", true, Of({1, 2}), GlobalStep(0), {});
  DenseAccumulator accumulator = AccumulatorOf(variable);
  const auto rule = MakeSgd();
  const auto next = NextOf(TakenOf({{1, 2}, {3, 6}}, 0, 0.5f), *rule, &variable, &accumulator);
  CHECK(Values(*next.value) == std::vector<float>{0, 0});
  CHECK(Values(*variable.newest()) == std::vector<float>{1, 2});
  CHECK(accumulator.global_step() == GlobalStep(1));
  CHECK(accumulator.num_accumulated() == 0);
}

TEST_CASE("slots move with the variable") {
  std::vector<Tensor> slots;
  slots.push_back(Of({10}));
  Variable variable("w", true, Of({1}), GlobalStep(0), std::move(slots));
  DenseAccumulator accumulator = AccumulatorOf(variable);
  const auto rule = MakeMomentum({0.5f, false});
  const auto next = NextOf(TakenOf({{1}}, 0, 1.0f), *rule, &variable, &accumulator);
  CHECK(variable.slots()[0].as<float>()[0] == 6);
  CHECK(Values(*next.value) == std::vector<float>{-5});
}

TEST_CASE("a statistic becomes the mean, whatever the optimizer and the learning rate") {
  Variable variable("mean", false, Of({100, 100}), GlobalStep(0), {});
  DenseAccumulator accumulator = AccumulatorOf(variable);
  const auto rule = MakeMomentum({0.5f, false});
  const auto next = NextOf(TakenOf({{1, 4}, {3, 8}}, 0, 123.0f), *rule, &variable, &accumulator);
  CHECK(Values(*next.value) == std::vector<float>{2, 6});
}

TEST_CASE("more gradients than required are all averaged") {
  Variable variable("w", true, Of({0}), GlobalStep(4), {});
  DenseAccumulator accumulator = AccumulatorOf(variable);
  accumulator.SetGlobalStep(GlobalStep(4));
  TakenGradients taken = TakenOf({{3}, {6}, {9}}, 4, 1.0f);
  taken.required = 2;
  CHECK(Values(*NextOf(taken, *MakeSgd(), &variable, &accumulator).value) ==
        std::vector<float>{-6});
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
  DenseAccumulator accumulator = AccumulatorOf(variable);
  const auto rule = MakeMomentum({0.9f, true});
  ThreadPool pool(threads);
  for (int64_t step = 0; step < 2; ++step) {
    const TakenGradients taken = TakenOf({wave(1), wave(2), wave(3)}, step, 0.1f);
    DenseUpdate update(taken, *rule, {}, &variable, &accumulator);
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
  DenseAccumulator accumulator = AccumulatorOf(variable);
  const auto next = NextOf(TakenOf({{}, {}}, 0, 1.0f), *MakeSgd(), &variable, &accumulator);
  CHECK(next.value->num_elements() == 0);
}

}  // namespace
}  // namespace lockstep::ps
