// Training and evaluation on a device whose work runs in any order that streams and events allow.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/deferred_device.h"
#include "tests/unit/worker/tower/models.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {
namespace {

using test::DeferredDevice;

constexpr uint64_t kSeeds = 1000;
constexpr int64_t kBatch = 4;  // of a tower; enough to look up every row of a table
constexpr int kMostTowers = 3;
constexpr int kVariants = 2;  // of the data: what a step leaves behind differs from the next one's

const std::vector<const char*>& Models() {
  static const std::vector<const char*> models = {kLeNet,       kResidual,  kRegression,
                                                  kWideAndDeep, kSequences, kStates};
  return models;
}

ReducerOptions OptionsOf(int towers, int kind) {
  ReducerOptions options{.towers = towers, .count = kind % 2};
  if (kind == 1) options.clipping.set_value(0.01f);
  if (kind == 2) options.clipping.set_norm(0.02f);
  if (kind == 3) options.clipping.set_global_norm(0.05f);
  if (kind >= 4) options.ps_device = StrategyDef::ParameterServer::GPU;
  if (kind == 5) options.clipping.set_norm(0.02f);
  return options;
}
constexpr int kReducerKinds = 6;

std::vector<Batch> BatchesOf(const ModelGraph& graph, int towers, int variant) {
  std::vector<Batch> batches;
  for (int t = 0; t < towers; ++t) {
    batches.push_back(BatchOf(graph, kBatch, (variant * towers + t) * kBatch));
  }
  return batches;
}

// What a step gives: the gradients, the loss last.
struct Result {
  std::vector<Tensor> gradients;
  friend bool operator==(const Result& a, const Result& b) {
    for (size_t v = 0; v < a.gradients.size(); ++v) {
      if (!SameBits(a.gradients[v], b.gradients[v])) return false;
    }
    return true;
  }
};

// A group that trains on one variant of the data or another.
class Trainer {
 public:
  Trainer(const char* model, Device* device, const ReducerOptions& options)
      : graph_(GraphOf(model)), towers_(options.towers) {
    auto group = TowerGroup::Create(graph_, device, cpu::Ops(),
                                    {.batch_per_tower = kBatch, .reducer = options});
    INFO(group.status());
    REQUIRE(group.ok());
    group_ = *std::move(group);
  }

  // Keeps what each gradient was when it was announced.
  absl::StatusOr<Result> Train(int variant) {
    const std::vector<Batch> batches = BatchesOf(graph_, towers_, variant);
    Operands operands(graph_);
    Result result;
    result.gradients.resize(graph_.variables().size());
    const absl::StatusOr<float> loss =
        group_->Train(batches, {operands.variable_views}, operands.gradient_views, 7,
                      [&](std::span<const int> variables) {
                        for (const int v : variables) {
                          result.gradients[v] = operands.gradients[v].Clone();
                        }
                      });
    if (!loss.ok()) return loss.status();
    CHECK(*loss == result.gradients.back().as<float>()[0]);
    return result;
  }

 private:
  const ModelGraph graph_;
  const int towers_;
  std::unique_ptr<TowerGroup> group_;
};

TEST_CASE("training in any order gives the bits of a CPU") {
  CpuDevice cpu(1);
  for (const char* model : Models()) {
    INFO(model);
    DeferredDevice deferred(1, 0);
    std::map<std::pair<int, int>, std::unique_ptr<Trainer>> trainers;  // by towers and reducer
    std::map<std::pair<int, int>, std::vector<Result>> expected;       // then by variant
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const int towers = 1 + static_cast<int>(seed % kMostTowers);
      const int kind = static_cast<int>(seed / kMostTowers) % kReducerKinds;
      const ReducerOptions options = OptionsOf(towers, kind);
      std::unique_ptr<Trainer>& trainer = trainers[{towers, kind}];
      std::vector<Result>& wanted = expected[{towers, kind}];
      if (trainer == nullptr) {
        trainer = std::make_unique<Trainer>(model, &deferred, options);
        Trainer on_cpu(model, &cpu, options);
        for (int variant = 0; variant < kVariants; ++variant) {
          wanted.push_back(*on_cpu.Train(variant));
        }
      }
      deferred.Reseed(seed);
      const int variant = static_cast<int>(seed / (kMostTowers * kReducerKinds)) % kVariants;
      if (*trainer->Train(variant) != wanted[variant]) {
        FAIL("seed " << seed << ", towers " << towers << ", reducer " << kind);
      }
    }
  }
}

TEST_CASE("evaluation in any order gives the bits of a CPU") {
  CpuDevice cpu(1);
  for (const char* model : Models()) {
    INFO(model);
    const ModelGraph graph = GraphOf(model);
    const TowerOptions options{.batches = {5, 3}, .training = false, .whole_tables = true};
    DeferredDevice deferred(1, 0);
    const auto on_cpu = *Tower::Create(graph, &cpu, cpu::Ops(), options);
    const auto tower = *Tower::Create(graph, &deferred, cpu::Ops(), options);
    Operands operands(graph);
    const VariableValues values{operands.variable_views};
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      deferred.Reseed(seed);
      const Batch batch = BatchOf(graph, seed % 2 == 0 ? 5 : 3, static_cast<int64_t>(seed % 3));
      const Tower::Evaluation wanted = *on_cpu->Evaluate(batch, values);
      const Tower::Evaluation got = *tower->Evaluate(batch, values);
      if (got.loss_sum != wanted.loss_sum || got.correct != wanted.correct) FAIL("seed " << seed);
      const TensorView scores = *on_cpu->Predict(batch, values, 0);
      const TensorView again = *tower->Predict(batch, values, 0);
      if (!std::ranges::equal(scores.as<float>(), again.as<float>())) FAIL("seed " << seed);
    }
  }
}

TEST_CASE("evaluation that is refused leaves no copy of the caller's memory under way") {
  const ModelGraph graph = GraphOf(kRegression);
  const Operands operands(graph);
  // More bytes than were planned: refused once the features are under way.
  std::vector<TensorView> values = operands.variable_views;
  const Tensor too_large(DType::kFloat32, Shape({1 << 10}));
  values.back() = too_large.view();
  for (const bool predicts : {false, true}) {
    CAPTURE(predicts);
    DeferredDevice deferred(1, 0);
    const auto tower =
        *Tower::Create(graph, &deferred, cpu::Ops(), {.batches = {kBatch}, .training = false});
    const Batch batch = BatchOf(graph, kBatch, 0);
    const absl::Status refused = predicts ? tower->Predict(batch, {values}, 0).status()
                                          : tower->Evaluate(batch, {values}).status();
    CHECK_THAT(std::string(refused.message()), Catch::Contains("planned are at most"));
    CHECK(deferred.IsIdle());
    CHECK(tower->Evaluate(batch, {operands.variable_views}).ok());
  }
}

// Whether any seed shows that a step leaves out its wait number `index`.
bool IsDetected(DeferredDevice* device, Trainer* trainer, const std::vector<Result>& wanted,
                int64_t index) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const int variant = static_cast<int>(seed % kVariants);
    device->Reseed(seed);
    device->OmitWait(index);
    const Result got = *trainer->Train(variant);
    if (got != wanted[variant]) return true;
  }
  return false;
}

TEST_CASE("each wait that a step leaves out shows") {
  for (const int towers : {1, 2}) {
    for (const int kind : {0, 2, 4, 5}) {  // not a global norm, whose op waits for all events
      CAPTURE(towers, kind);
      CpuDevice cpu(1);
      DeferredDevice deferred(1, 0);
      Trainer on_cpu(kResidual, &cpu, OptionsOf(towers, kind));
      Trainer trainer(kResidual, &deferred, OptionsOf(towers, kind));
      std::vector<Result> wanted;
      for (int variant = 0; variant < kVariants; ++variant) {
        wanted.push_back(*on_cpu.Train(variant));
      }
      const int64_t before = deferred.waits();
      CHECK(*trainer.Train(0) == wanted[0]);
      const int64_t waits = deferred.waits() - before;
      CHECK(waits > 0);
      for (int64_t index = 0; index < waits; ++index) {
        CAPTURE(index);
        CHECK(IsDetected(&deferred, &trainer, wanted, index));
      }
    }
  }
}

TEST_CASE("an error of the device ends a step, and every later one") {
  for (const int towers : {1, 2}) {
    for (const int64_t task : {0, 5, 20}) {
      DeferredDevice deferred(1, 3);
      Trainer trainer(kLeNet, &deferred, OptionsOf(towers, 0));
      CHECK(trainer.Train(0).ok());
      deferred.FailTask(task);
      CHECK(absl::IsInternal(trainer.Train(0).status()));
      CHECK(absl::IsInternal(trainer.Train(1).status()));
      CHECK(absl::IsInternal(deferred.status()));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
