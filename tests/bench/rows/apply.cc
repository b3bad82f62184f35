// Summing four gradients of 64 MiB and applying their mean, as a ps does when a variable closes,
// against a plain pass that reads and writes as many arrays on as many threads.
#include <algorithm>
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
#include "common/update/dense_update.h"
#include "tests/bench/interleave.h"
#include "tests/bench/rows/apply_floor.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr size_t kApplyElements = size_t{16} << 20;
constexpr size_t kGradients = ApplyFloor::kGradients;
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
    const size_t arrays = kGradients + 2 + 2 * num_slots();
    return static_cast<double>(arrays * kApplyElements * sizeof(float));
  }
  size_t num_slots() const { return variable_.slots().size(); }
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

 private:
  static std::vector<Tensor> Slots(size_t count) {
    std::vector<Tensor> slots;
    for (size_t i = 0; i < count; ++i) slots.push_back(RandomTensor(100 + i));
    return slots;
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
  ApplyFloor floor(kApplyElements, applied.num_slots(), applied.num_threads());
  const auto pass = [&floor] { floor.Pass(); };
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
  result.peer = "a plain pass over as much memory";
  result.peer_value = medians.theirs;
  result.target = optimizer.target;
  result.note = absl::StrCat(kGradients, " gradients of 64 MiB, ", applied.num_threads(),
                             " threads; bytes read and written of gradients, value and slots; the "
                             "pass adds the sum of the "
                             "gradients to value and slots");
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
