// Summing four gradients of 64 MiB and applying their mean, as a ps does when a variable closes,
// against a pass that reads and writes the same arrays in the same ranges on the same threads.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/cpus.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/base/thread_pool.h"
#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"
#include "common/tensor/non_temporal_copy.h"
#include "common/tensor/sum_of_terms.h"
#include "common/tensor/vector_loop.h"
#include "common/update/dense_update.h"
#include "tests/bench/interleave.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr size_t kApplyElements = size_t{16} << 20;
constexpr size_t kGradients = 4;
constexpr size_t kBlock = 512;
constexpr size_t kRangeElements = DenseUpdate::kRangeBytes / sizeof(float);
constexpr float kLearningRate = 1e-3f;
constexpr double kApplyTarget = 0.85;

Tensor RandomTensor(uint64_t seed) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(kApplyElements)}));
  const Philox generator(seed, "apply");
  const std::span<float> elements = tensor.as<float>();
  for (size_t i = 0; i < kApplyElements; i += 4) {
    const auto words = generator.At(i / 4);
    for (size_t j = 0; j < 4; ++j) elements[i + j] = UniformFloat(words[j]) + 0.01f;
  }
  return tensor;
}

// A variable as a ps has it, with the gradients of a step.
class Applied {
 public:
  explicit Applied(std::unique_ptr<const UpdateRule> rule)
      : rule_(std::move(rule)),
        scalars_(InitialScalars(*rule_)),
        variable_("w", true, RandomTensor(0), GlobalStep(0), Slots(rule_->slots().size())) {
    for (uint32_t i = 0; i < kGradients; ++i) gradients_.push_back({RandomTensor(i + 1)});
  }

  // Read or written in one step.
  double num_bytes() const {
    const size_t arrays = kGradients + 2 + 2 * variable_.slots().size();
    return static_cast<double>(arrays * kApplyElements * sizeof(float));
  }
  int num_threads() const { return pool_.num_threads(); }

  void Step() {
    DenseUpdate update(variable_.newest_version(), kLearningRate, *rule_, scalars_, &variable_);
    DenseUpdate::GradientSources sources;
    for (const Gradient& gradient : gradients_) sources.push_back(SourceOf(gradient));
    update.SetGradients(std::move(sources), kGradients);
    pool_.ForRanges(update.num_ranges(), 1, [&](size_t range, size_t) { update.Make(range); });
    variable_.DropPrevious().reset();
    variable_.Publish(update.Finish());
  }

  // The least that can be done with the same memory: one addition for each array that is read.
  void Pass() {
    switch (variable_.slots().size()) {
      case 0:
        return PassOver<0>();
      case 1:
        return PassOver<1>();
      case 2:
        return PassOver<2>();
      default:
        return PassOver<3>();
    }
  }

 private:
  static std::vector<Tensor> Slots(size_t count) {
    std::vector<Tensor> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back(RandomTensor(100 + i));
    return slots;
  }

  template <size_t kSlots>
  void PassOver() {
    std::shared_ptr<ValueBuffer> buffer = variable_.TakeBuffer();
    float* const value = buffer->tensor.as<float>().data();
    const float* const old = variable_.newest()->as<float>().data();
    std::vector<TensorView> terms;
    for (const Gradient& gradient : gradients_)
      terms.push_back(std::as_const(gradient).value.view());
    pool_.ForRanges(kApplyElements, kRangeElements, [&](size_t begin, size_t end) {
      alignas(Tensor::kAlignment) std::array<float, kBlock> sums;
      for (size_t first = begin; first < end; first += kBlock) {
        const size_t count = std::min(kBlock, end - first);
        std::array<float*, kSlots> slots;
        for (size_t k = 0; k < kSlots; ++k) {
          slots[k] = variable_.slots()[k].as<float>().data() + first;
        }
        const SumOfTerms<float, kGradients> sum(terms, first);
        ForEachElement(count, [sum, slots, old = old + first, to = sums.data()](size_t i) {
          to[i] = sum(i) + old[i];
          if constexpr (kSlots > 0) slots[0][i] = slots[0][i] + 0.0f;
          if constexpr (kSlots > 1) slots[1][i] = slots[1][i] + 0.0f;
          if constexpr (kSlots > 2) slots[2][i] = slots[2][i] + 0.0f;
        });
        NonTemporalCopy(value + first, sums.data(), count * sizeof(float));
      }
      FlushStreams();
    });
    variable_.Finish(std::move(buffer), nullptr).value.reset();
  }

  const std::unique_ptr<const UpdateRule> rule_;
  const std::vector<float> scalars_;
  Variable variable_;
  std::vector<Gradient> gradients_;
  ThreadPool pool_{UsableCpus()};
};

double SecondsFor(int times, const std::function<void()>& run) {
  const absl::Duration start = Clock::Real()->Monotonic();
  for (int i = 0; i < times; ++i) run();
  return absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
}

struct Optimizer {
  std::string row;
  std::function<std::unique_ptr<const UpdateRule>()> make;
  std::optional<double> target = kApplyTarget;
};

std::vector<Optimizer> Optimizers() {
  return {
      {"apply_sgd", [] { return MakeSgd(); }},
      {"apply_momentum", [] { return MakeMomentum({.momentum = 0.9f}); }},
      {"apply_nesterov", [] { return MakeMomentum({.momentum = 0.9f, .nesterov = true}); }},
      {"apply_adagrad", [] { return MakeAdagrad({}); }},
      {"apply_adadelta", [] { return MakeAdadelta({}); }},
      {"apply_rmsprop", [] { return MakeRmsProp({.momentum = 0.9f}); }},
      {"apply_rmsprop_centered", [] { return MakeRmsProp({.momentum = 0.9f, .centered = true}); }},
      {"apply_adam", [] { return MakeAdam({}); }},
      {"apply_adamw", [] { return MakeAdam({.weight_decay = 0.01f}); }},
      {"apply_ftrl", [] { return MakeFtrl({.l1_regularization_strength = 0.01f}); }},
      // Most of its time goes into powers that have TensorFlow's bits.
      {"apply_ftrl_power", [] { return MakeFtrl({.learning_rate_power = -0.7f}); }, std::nullopt},
  };
}

absl::StatusOr<RowResult> Compare(const Optimizer& optimizer, const BenchOptions& options) {
  Applied applied(optimizer.make());
  const auto step = [&applied] { applied.Step(); };
  const auto pass = [&applied] { applied.Pass(); };
  step();
  pass();
  const int times = std::max(1, static_cast<int>(options.run_seconds / SecondsFor(1, step)));
  const auto rate = [&](const std::function<void()>& run) -> Measure {
    return [&applied, times, run]() -> absl::StatusOr<double> {
      return applied.num_bytes() * times / SecondsFor(times, run) / 1e9;
    };
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const Medians medians,
                            Interleave(options.rounds, rate(step), rate(pass)));
  RowResult result;
  result.name = optimizer.row;
  result.value = medians.ours;
  result.unit = "GB/s";
  result.peer = "a pass over the same arrays";
  result.peer_value = medians.theirs;
  result.target = optimizer.target;
  result.note = absl::StrCat(
      kGradients, " gradients of 64 MiB, ", applied.num_threads(),
      " threads; bytes read and written of gradients, value and slots; the pass adds up what it "
      "reads, in the same ranges");
  return result;
}

}  // namespace

RowGroup ApplyRows() {
  RowGroup group;
  for (const Optimizer& optimizer : Optimizers()) group.names.push_back(optimizer.row);
  group.run = [](const BenchOptions& options, const std::vector<std::string>& wanted,
                 std::vector<RowResult>* results) -> absl::Status {
    for (const Optimizer& optimizer : Optimizers()) {
      if (std::ranges::find(wanted, optimizer.row) == wanted.end()) continue;
      LOCKSTEP_ASSIGN_OR_RETURN(RowResult result, Compare(optimizer, options));
      results->push_back(std::move(result));
    }
    return absl::OkStatus();
  };
  return group;
}

}  // namespace lockstep::bench
