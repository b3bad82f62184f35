#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/config/text_proto.h"
#include "common/model/graph.h"
#include "common/turns/gradient_turns.h"
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

LossDef LossOf(const json& loss) {
  LossDef def;
  def.set_name(loss.at("name").get<std::string>());
  def.set_steps(loss.at("steps"));
  const json& hyper = loss.at("optimizer");
  def.mutable_optimizer()->mutable_learning_rate()->set_base(hyper.at("learning_rate"));
  OptimizerDef::RmsProp* const rule = def.mutable_optimizer()->mutable_rmsprop();
  rule->set_decay(hyper.at("decay"));
  rule->set_momentum(hyper.at("momentum"));
  rule->set_epsilon(hyper.at("epsilon"));
  return def;
}

// Of the loss that trains the variable, counted from 1.
uint32_t LossThatTrains(const json& script, const std::string& variable) {
  uint32_t number = 1;
  for (const json& loss : script.at("losses")) {
    if (absl::StartsWith(variable, loss.at("trains").get<std::string>())) return number;
    ++number;
  }
  return 0;
}

// One shard with the losses' variables, and its one worker.
class GanShard {
 public:
  explicit GanShard(const json& script)
      : placement_(PlacementOf(script.at("initial"), 1)), shard_(ps::ShardOptions()) {
    for (VariableSpec& spec : *placement_.mutable_variables()) {
      spec.set_loss(LossThatTrains(script, spec.name()));
    }
    for (const json& loss : script.at("losses")) placement_.add_turns(loss.at("steps"));
  }
  ~GanShard() { shard_.Stop(); }

  absl::Status Start(const json& script) {
    const test::TemporaryFolder folder;
    CreateVariablesRequest plan;
    *plan.mutable_command() = ChiefOfScript();
    *plan.mutable_placement() = placement_;
    for (const json& loss : script.at("losses")) *plan.add_losses() = LossOf(loss);
    plan.set_total_num_replicas(1);
    plan.set_replicas_to_aggregate(1);
    json initial = {{"initial", script.at("initial")},
                    {"optimizer", "rmsprop"},
                    {"hyper_parameters", script.at("losses").at(0).at("optimizer")}};
    initial["hyper_parameters"]["centered"] = false;
    LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_restore_from(),
                              WriteInitialCheckpoint(folder.path(), initial));
    ps::View view{.command = ChiefOfScript(), .epoch = Epoch(1)};
    view.members.push_back({WorkerIndex(0), IdentityOf(0).incarnation});
    LOCKSTEP_RETURN_IF_ERROR(shard_.SetView(view).status());
    return shard_.CreateVariables(plan).status();
  }

  // Of a version that exists, in the order of the placement.
  absl::StatusOr<std::vector<Tensor>> Pull(GlobalStep version) {
    ps::PullArguments arguments{IdentityOf(0), version, {}};
    for (const VariableSpec& spec : placement_.variables()) {
      arguments.pieces.push_back({.variable = VariableId(spec.id())});
    }
    Answer<ps::PullResult> answer;
    shard_.Pull(arguments, answer.done());
    if (!answer.answered()) return absl::InternalError("the step did not close with its turn");
    LOCKSTEP_ASSIGN_OR_RETURN(const ps::PullResult result, answer.Wait());
    std::vector<Tensor> values;
    for (const auto& piece : result.pieces) values.push_back(piece.owner->Clone());
    return values;
  }

  absl::Status Close(GlobalStep step, float learning_rate, ScriptPush push) {
    Answer<ps::ClosedStep> closed;
    shard_.Grant({.command = ChiefOfScript(), .step = step, .learning_rate = learning_rate},
                 closed.done());
    return push.PushTo(&shard_);
  }

  const Placement& placement() const { return placement_; }

 private:
  Placement placement_;
  ps::Shard shard_;
};

// The towers of one loss.
class LossTowers {
 public:
  static absl::StatusOr<std::unique_ptr<LossTowers>> Create(const json& script, const json& loss,
                                                            const ModelGraph& graph,
                                                            worker::Device* device) {
    std::vector<int> nodes;
    for (const json& name : loss.at("loss")) {
      for (size_t node = 0; node < graph.nodes().size(); ++node) {
        if (graph.nodes()[node].name == name) nodes.push_back(static_cast<int>(node));
      }
    }
    const std::string trains = loss.at("trains");
    std::unique_ptr<LossTowers> towers(
        new LossTowers(graph.ForLosses(std::move(nodes), [&](int variable) {
          return absl::StartsWith(graph.variables()[variable].name, trains);
        })));
    LOCKSTEP_ASSIGN_OR_RETURN(towers->group_,
                              TowerGroup::Create(towers->graph_, device, worker::cpu::Ops(),
                                                 {.batch_per_tower = script.at("batch")}));
    return towers;
  }

  absl::StatusOr<float> Train(Tensor features, const std::vector<Tensor>& values,
                              const Placement& placement) {
    std::vector<TensorView> variables;
    std::vector<MutableTensorView> gradients;
    for (size_t i = 0; i < gradients_.size(); ++i) {
      const VariableSpec* const spec = Find(placement, graph_.variables()[i].name);
      // The training loss is nobody's but the tower's.
      variables.push_back(spec == nullptr ? TensorView(gradients_[i].view())
                                          : TensorView(values[spec->id()].view()));
      gradients.push_back(gradients_[i].view());
    }
    std::vector<worker::Batch> batches(1);
    batches[0].features = std::move(features);
    return group_->Train(batches, {variables}, gradients, /*random_key=*/0,
                         [](std::span<const int>) {});
  }

  std::vector<double> GradientOf(const std::string& name) const {
    size_t index = 0;
    while (graph_.variables()[index].name != name) ++index;
    return ElementsOf(gradients_[index].view());
  }

 private:
  explicit LossTowers(ModelGraph graph) : graph_(std::move(graph)) {
    for (const ModelVariable& variable : graph_.variables()) {
      gradients_.push_back(Tensor::Zeros(variable.dtype, variable.shape));
    }
  }

  static const VariableSpec* Find(const Placement& placement, const std::string& name) {
    for (const VariableSpec& spec : placement.variables()) {
      if (spec.name() == name) return &spec;
    }
    return nullptr;
  }

  const ModelGraph graph_;
  std::unique_ptr<TowerGroup> group_;
  std::vector<Tensor> gradients_;
};

}  // namespace

absl::Status ReplayGan(const json& script, Comparison* comparison) {
  ModelDef model;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextProto("model", script.at("model").get<std::string>(), &model));
  LOCKSTEP_ASSIGN_OR_RETURN(const ModelGraph graph, ModelGraph::Build(model));
  worker::CpuDevice device(1);
  GanShard shard(script);
  LOCKSTEP_RETURN_IF_ERROR(shard.Start(script));
  std::vector<int64_t> steps;
  std::vector<std::unique_ptr<LossTowers>> towers;
  for (const json& loss : script.at("losses")) {
    steps.push_back(loss.at("steps"));
    LOCKSTEP_ASSIGN_OR_RETURN(towers.emplace_back(),
                              LossTowers::Create(script, loss, graph, &device));
  }
  const LossTurns turns(steps);
  const Shape batch({script.at("batch"), model.input_shape(0)});
  GlobalStep step;
  for (const json& entry : script.at("log")) {
    comparison->Enter(static_cast<int>(step.value()));
    const size_t turn = turns.LossOf(step);
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor features,
                              TensorOf(DType::kFloat32, batch, Flatten(entry.at("features"))));
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Tensor> values, shard.Pull(step));
    LOCKSTEP_ASSIGN_OR_RETURN(const float loss,
                              towers[turn]->Train(std::move(features), values, shard.placement()));
    comparison->NearSoFar("loss", {entry.at("loss")}, {loss});
    ScriptPush push(IdentityOf(0), PushSeq(static_cast<uint64_t>(step.value()) + 1), step);
    for (const VariableSpec& spec : shard.placement().variables()) {
      if (spec.loss() != turn + 1) continue;
      LOCKSTEP_RETURN_IF_ERROR(push.Add(spec, towers[turn]->GradientOf(spec.name())));
    }
    const json& rate = script.at("losses").at(turn).at("optimizer").at("learning_rate");
    LOCKSTEP_RETURN_IF_ERROR(shard.Close(step, rate, std::move(push)));
    step = step.next();
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Tensor> next, shard.Pull(step));
    for (const VariableSpec& spec : shard.placement().variables()) {
      comparison->NearSoFar(spec.name(), Flatten(entry.at("variables").at(spec.name())),
                            ElementsOf(next[spec.id()].view()));
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
