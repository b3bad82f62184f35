#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "ps/shard/shard.h"
#include "tests/oracle/initial_checkpoint.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/shard_setup.h"
#include "tests/support/await.h"
#include "tests/support/temporary_folder.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;
using worker::TowerGroup;

absl::StatusOr<ModelGraph> RegressionOf(const json& script) {
  ModelDef model;
  model.add_input_shape(script.at("features"));
  LayerDef* const dense = model.add_layers();
  dense->set_name(std::string("w"));
  dense->mutable_dense()->set_units(script.at("outputs"));
  LayerDef* const loss = model.add_layers();
  loss->set_name(std::string("loss"));
  loss->mutable_l2_loss();
  return ModelGraph::Build(model);
}

// One shard whose job is asynchronous.
class AsyncShard {
 public:
  explicit AsyncShard(const json& script)
      : placement_(PlacementOf(script.at("initial"), 1)), shard_(ps::ShardOptions()) {}
  ~AsyncShard() { shard_.Stop(); }

  absl::Status Start(const json& script) {
    const test::TemporaryFolder folder;
    CreateVariablesRequest plan;
    *plan.mutable_command() = ChiefOfScript();
    *plan.mutable_placement() = placement_;
    LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_optimizer(), OptimizerOf(script));
    plan.mutable_optimizer()->mutable_learning_rate()->set_base(script.at("learning_rate"));
    plan.set_asynchronous(true);
    plan.set_total_num_replicas(1);
    plan.set_replicas_to_aggregate(1);
    LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_restore_from(),
                              WriteInitialCheckpoint(folder.path(), script));
    ps::View view{.command = ChiefOfScript(), .epoch = Epoch(1)};
    view.members.push_back({WorkerIndex(0), Of(0).incarnation});
    LOCKSTEP_RETURN_IF_ERROR(shard_.SetView(view).status());
    return shard_.CreateVariables(plan).status();
  }

  // The newest values, by name, and their version.
  struct Values {
    GlobalStep version;
    std::vector<Tensor> tensors;  // in the order of the placement
  };
  absl::StatusOr<Values> Pull(uint32_t tower) {
    ps::PullArguments arguments{Of(tower), GlobalStep(0), {}};
    for (const VariableSpec& spec : placement_.variables()) {
      arguments.pieces.push_back({.variable = VariableId(spec.id())});
    }
    Answer<ps::PullResult> answer;
    shard_.Pull(arguments, answer.done());
    if (!answer.answered()) return absl::InternalError("an asynchronous pull waits");
    LOCKSTEP_ASSIGN_OR_RETURN(const ps::PullResult result, answer.Wait());
    Values values{result.version, {}};
    for (const auto& piece : result.pieces) values.tensors.push_back(piece.owner->Clone());
    return values;
  }

  absl::Status Push(uint32_t tower, uint64_t push_seq, GlobalStep local_step,
                    const std::vector<std::vector<double>>& gradients) {
    ScriptPush push(Of(tower), PushSeq(push_seq), local_step);
    for (const VariableSpec& spec : placement_.variables()) {
      LOCKSTEP_RETURN_IF_ERROR(push.Add(spec, gradients[spec.id()]));
    }
    return push.PushTo(&shard_);
  }

  const Placement& placement() const { return placement_; }

 private:
  static ps::WorkerIdentity Of(uint32_t tower) {
    ps::WorkerIdentity identity = IdentityOf(0);
    identity.tower = tower;
    return identity;
  }

  const Placement placement_;
  ps::Shard shard_;
};

// A tower that trains by itself: a replica of one tower.
class Tower {
 public:
  static absl::StatusOr<std::unique_ptr<Tower>> Create(const json& script, uint32_t number,
                                                       const ModelGraph& graph,
                                                       worker::Device* device) {
    std::unique_ptr<Tower> tower(new Tower(number, graph));
    const int count = script.at("scale_gradient") ? script.at("towers").get<int>() : 1;
    LOCKSTEP_ASSIGN_OR_RETURN(tower->group_,
                              TowerGroup::Create(graph, device, worker::cpu::Ops(),
                                                 {.batch_per_tower = script.at("batch"),
                                                  .reducer = {.towers = 1, .count = count}}));
    const int64_t rows = script.at("batch");
    worker::Batch& batch = tower->batch_.emplace_back();
    LOCKSTEP_ASSIGN_OR_RETURN(batch.features,
                              TensorOf(DType::kFloat32, Shape({rows, script.at("features")}),
                                       Flatten(script.at("rows").at(number))));
    LOCKSTEP_ASSIGN_OR_RETURN(batch.labels,
                              TensorOf(DType::kFloat32, Shape({rows, script.at("outputs")}),
                                       Flatten(script.at("targets").at(number))));
    return tower;
  }

  absl::Status Pull(AsyncShard* shard) {
    LOCKSTEP_ASSIGN_OR_RETURN(values_, shard->Pull(number_));
    return absl::OkStatus();
  }

  // Returns the loss of the values that it has pulled.
  absl::StatusOr<float> Push(AsyncShard* shard) {
    std::vector<TensorView> variables;
    std::vector<MutableTensorView> views;
    for (const ModelVariable& variable : graph_.variables()) {
      variables.push_back(ValueOf(variable.name, *shard));
    }
    for (Tensor& gradient : gradients_) views.push_back(gradient.view());
    LOCKSTEP_ASSIGN_OR_RETURN(
        const float loss,
        group_->Train(batch_, {variables}, views, /*random_key=*/0, [](std::span<const int>) {}));
    std::vector<std::vector<double>> by_id(shard->placement().variables_size());
    for (const VariableSpec& spec : shard->placement().variables()) {
      by_id[spec.id()] = ElementsOf(gradients_[IndexOf(spec.name())].view());
    }
    LOCKSTEP_RETURN_IF_ERROR(shard->Push(number_, ++pushes_, values_.version, by_id));
    return loss;
  }

 private:
  Tower(uint32_t number, const ModelGraph& graph) : number_(number), graph_(graph) {
    for (const ModelVariable& variable : graph.variables()) {
      gradients_.push_back(Tensor::Zeros(variable.dtype, variable.shape));
    }
  }

  size_t IndexOf(const std::string& name) const {
    size_t index = 0;
    while (graph_.variables()[index].name != name) ++index;
    return index;
  }

  // The loss variable is nobody's but the tower's.
  TensorView ValueOf(const std::string& name, const AsyncShard& shard) const {
    for (const VariableSpec& spec : shard.placement().variables()) {
      if (spec.name() == name) return values_.tensors[spec.id()].view();
    }
    return gradients_[IndexOf(name)].view();
  }

  const uint32_t number_;
  const ModelGraph& graph_;
  std::unique_ptr<TowerGroup> group_;
  std::vector<worker::Batch> batch_;
  AsyncShard::Values values_;
  std::vector<Tensor> gradients_;
  uint64_t pushes_ = 0;
};

}  // namespace

absl::Status ReplayAsyncTowers(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelGraph graph, RegressionOf(script));
  worker::CpuDevice device(1);
  AsyncShard shard(script);
  LOCKSTEP_RETURN_IF_ERROR(shard.Start(script));
  std::vector<std::unique_ptr<Tower>> towers;
  for (uint32_t number = 0; number < script.at("towers"); ++number) {
    LOCKSTEP_ASSIGN_OR_RETURN(towers.emplace_back(), Tower::Create(script, number, graph, &device));
  }
  int number = 0;
  for (const json& entry : script.at("log")) {
    comparison->Enter(number++);
    Tower& tower = *towers.at(entry.at("tower"));
    if (entry.at("op") == "pull") {
      LOCKSTEP_RETURN_IF_ERROR(tower.Pull(&shard));
      continue;
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const float loss, tower.Push(&shard));
    comparison->NearSoFar("loss", {entry.at("loss")}, {loss});
    LOCKSTEP_ASSIGN_OR_RETURN(const AsyncShard::Values values, shard.Pull(0));
    for (const VariableSpec& spec : shard.placement().variables()) {
      comparison->NearSoFar(spec.name(), Flatten(entry.at("variables").at(spec.name())),
                            ElementsOf(values.tensors[spec.id()].view()));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
