// Whole trainings, replicated by every reduction that runs on CPUs, against parameter servers. All
// in this process: tests/integration/equal_training_test.cc has real ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/initial_value.h"
#include "tests/unit/worker/step/click_job.h"
#include "tests/unit/worker/strategy/replicated/reductions.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/strategy/replicated/reduction_of_job.h"
#include "worker/strategy/replicated/replicas.h"
#include "worker/tower/replicated_towers.h"

namespace lockstep::worker {
namespace {

using test::ClickJob;
using test::ParseOrDie;

constexpr int64_t kBatch = 96;
constexpr int64_t kSteps = 200;

// Of 2, 3, 4, 6 and 8 participants.
constexpr Topology kGroups[] = {{1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 4}, {2, 2}, {4, 1}, {1, 6},
                                {2, 3}, {3, 2}, {6, 1}, {1, 8}, {2, 4}, {4, 2}, {8, 1}};

// That of tests/oracle/mlp.
constexpr char kMlp[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "hidden" dense { units: 32 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

DataDef Digits() {
  return ParseOrDie<DataDef>(
      "idx { train_images: 'deploy/data/digits/train-images.idx.gz' "
      "train_labels: 'deploy/data/digits/train-labels.idx.gz' } scale: 0.0625");
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> variables;
};

// What the parameter servers of a job make of it, and its variables.
class Reference {
 public:
  Reference(const std::string& optimizer, uint32_t workers)
      : job_({.model = kMlp,
              .data = Digits(),
              .optimizer = optimizer,
              .workers = workers,
              .batch = kBatch / workers,
              .end = kSteps}) {
    for (const absl::Status& end : job_.Train()) REQUIRE(end.ok());
    trained_.losses = job_.losses();
    for (const WholeVariable& variable : job_.layout().variables()) {
      if (variable.trainable) trained_.variables.push_back(job_.Values(variable.name));
    }
  }

  const Trained& trained() const { return trained_; }
  const ModelGraph& graph() const { return job_.graph(); }
  const VariableLayout& layout() const { return job_.layout(); }

 private:
  ClickJob job_;
  Trained trained_;
};

// All participants of a group of workers are here.
class WholeGroupReducer final : public GroupReducer {
 public:
  explicit WholeGroupReducer(GroupReduction reduction) : reduction_(std::move(reduction)) {
    for (int rank = 0; rank < participants(); ++rank) {
      std::vector<Tensor>& tensors = memory_.emplace_back();
      std::vector<MutableTensorView>& views = views_.emplace_back();
      for (const TensorSpec& spec : reduction_.tensors) {
        tensors.emplace_back(spec.dtype, *spec.shape);
        views.push_back(tensors.back().view());
      }
    }
  }

  MutableTensorView tensor(int rank, int i) const override { return views_[rank][i]; }
  void Reduce(int64_t, absl::Span<const std::vector<TensorView>> gradients,
              StatusCallback done) override {
    for (int rank = 0; rank < participants(); ++rank) {
      for (size_t i = 0; i < views_[rank].size(); ++i) {
        std::ranges::copy(gradients[rank][i].as<float>(), views_[rank][i].as<float>().begin());
      }
    }
    RunBatchInMemory(reduction_.plan, views_, participants());
    done(absl::OkStatus());
  }
  void Cancel(absl::Status) override {}
  GroupTraffic traffic() const override { return {}; }

 private:
  int participants() const { return reduction_.topology.num_participants(); }

  const GroupReduction reduction_;
  std::vector<std::vector<Tensor>> memory_;  // by rank
  std::vector<std::vector<MutableTensorView>> views_;
};

// Step 0 of the reference's variables, with the slots that the optimizer begins with.
ReplicaState FirstState(const Reference& reference, const OptimizerRules& rules) {
  ReplicaState state;
  const std::vector<ModelVariable>& variables = reference.graph().variables();
  for (const WholeVariable& variable : reference.layout().variables()) {
    const auto of = std::ranges::find(variables, variable.name, &ModelVariable::name);
    Tensor& value = state.values.emplace_back(variable.dtype, variable.shape);
    FillInitialValue(of->initializer, ClickJob::kSeed, variable.name, value.view());
    std::vector<Tensor>& slots = state.slots.emplace_back();
    if (!variable.trainable) continue;
    for (const SlotSpec& slot : rules.of(variable.name).slots()) {
      REQUIRE_FALSE(slot.starts_as_variable);
      std::ranges::fill(slots.emplace_back(variable.dtype, variable.shape).as<float>(),
                        slot.initial_value);
    }
  }
  for (const ScalarSpec& scalar : rules.plain().scalars()) {
    state.scalars.push_back(scalar.initial_value);
  }
  return state;
}

Trained TrainReplicated(const Reference& reference, const OptimizerDef& optimizer,
                        const Topology& topology, const std::string& strategy) {
  const int participants = topology.num_participants();
  auto chosen = ReductionOf(ParseOrDie<StrategyDef::Replicated>(strategy), topology,
                            ReducedTensors(reference.layout()));
  INFO(chosen.status());
  REQUIRE(chosen.ok());
  WholeGroupReducer reducer(std::move(chosen->reduction));
  OptimizerRules rules = *OptimizerRules::Create(optimizer);
  ReplicaState state = FirstState(reference, rules);
  const auto replicas = *Replicas::Create({.towers = participants}, reference.layout(),
                                          std::move(rules), std::move(state));
  const ModelGraph& graph = reference.graph();
  // Parts of a batch by rank, however ranks divide into workers and towers.
  const auto data = *Pipeline::Open(Digits(), ExampleSpecOf(graph),
                                    {.seed = ClickJob::kDataSeed,
                                     .batch_per_tower = kBatch / participants,
                                     .towers = participants});
  CpuDevice device(1);
  // One after the other: what matters is what each computes.
  const auto tower = *ReplicatedTowers::Create(graph, &device, cpu::Ops(),
                                               {.batch_per_tower = kBatch / participants});
  Trained trained;
  for (int64_t step = 0; step < kSteps; ++step) {
    const std::vector<Batch>& batches = **data->BatchesFor(GlobalStep(step));
    double loss = 0;
    for (int rank = 0; rank < participants; ++rank) {
      loss += *tower->TrainStep({&batches[rank], 1}, replicas->memory().subspan(rank, 1), 0,
                                [](std::span<const int>) {});
    }
    trained.losses.push_back(static_cast<float>(loss / participants));
    const auto gradients = replicas->gradients();
    reducer.Reduce(step, absl::MakeConstSpan(gradients.data(), gradients.size()),
                   [](const absl::Status&) {});
    replicas->Apply(optimizer.learning_rate().base(), reducer);
  }
  for (const int variable : replicas->reduced()) {
    const TensorView value = replicas->memory()[0].values.views[variable];
    trained.variables.emplace_back(value.as<float>().begin(), value.as<float>().end());
    for (int rank = 1; rank < participants; ++rank) {
      CHECK(std::ranges::equal(replicas->memory()[rank].values.views[variable].as<float>(),
                               value.as<float>()));
    }
  }
  return trained;
}

double LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(double{a[i]} - double{b[i]}) / std::abs(double{a[i]}));
  }
  return largest;
}

TEST_CASE("every reduction trains as parameter servers do") {
  const std::string text = GENERATE(as<std::string>(), "sgd {} learning_rate { base: 0.1 }",
                                    "momentum { momentum: 0.9 } learning_rate { base: 0.02 }",
                                    "adam {} learning_rate { base: 0.002 }");
  CAPTURE(text);
  const OptimizerDef optimizer = ParseOrDie<OptimizerDef>(text);
  const Reference reference(text, 2);
  REQUIRE(reference.trained().losses.size() == kSteps);
  CHECK(reference.trained().losses.back() < reference.trained().losses.front() / 2);
  for (const Topology& topology : kGroups) {
    for (const std::string& strategy : test::ReductionsFor(topology)) {
      CAPTURE(topology.workers, topology.towers, strategy);
      const Trained replicated = TrainReplicated(reference, optimizer, topology, strategy);
      if (topology.num_participants() == 2) {
        CHECK(replicated.losses == reference.trained().losses);
        CHECK(replicated.variables == reference.trained().variables);
      } else {
        // They differ by at most 5.7e-7, with momentum.
        CHECK(LargestDifference(reference.trained().losses, replicated.losses) < 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
