#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/graph.h"
#include "common/optimizer/update_rule.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/rules.h"
#include "tests/oracle/trained_variable.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/local_sync/local_sync_parallel_optimizer.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;
using worker::LocalSyncParallelOptimizer;
using worker::TowerGroup;

absl::StatusOr<ModelGraph> ClassifierOf(const json& script) {
  ModelDef model;
  model.add_input_shape(script.at("features"));
  const auto add = [&](const char* name) {
    LayerDef* const layer = model.add_layers();
    layer->set_name(std::string(name));
    return layer;
  };
  add("hidden")->mutable_dense()->set_units(script.at("hidden"));
  BatchNorm* const norm = add("norm")->mutable_batch_norm();
  norm->set_momentum(script.at("bn_momentum"));
  norm->set_epsilon(script.at("bn_epsilon"));
  add("tanh")->mutable_tanh();
  add("scores")->mutable_dense()->set_units(script.at("classes"));
  add("loss")->mutable_softmax_cross_entropy();
  return ModelGraph::Build(model);
}

absl::StatusOr<worker::ReducerOptions> ReducerOf(const json& script) {
  worker::ReducerOptions reducer{.towers = script.at("towers")};
  const std::string updates = script.at("batch_norm_updates");
  if (!JobDef::BatchNormUpdates_Parse(updates, &reducer.batch_norm_updates)) {
    return absl::InvalidArgumentError(absl::StrCat("no updates are called \"", updates, "\""));
  }
  const json& norm = script.at("global_norm");
  if (!norm.is_null()) reducer.clipping.set_global_norm(norm);
  return reducer;
}

// The towers, the variables that they share, and the optimizer that changes these.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Create(const json& script) {
    LOCKSTEP_ASSIGN_OR_RETURN(ModelGraph graph, ClassifierOf(script));
    std::unique_ptr<Training> training(new Training(script, std::move(graph)));
    LOCKSTEP_RETURN_IF_ERROR(training->MakeVariables(script));
    LOCKSTEP_RETURN_IF_ERROR(training->MakeTowers(script));
    return training;
  }

  absl::Status Load(const json& entry, Comparison* comparison) {
    const auto rows = static_cast<int64_t>(entry.at("features").size());
    LOCKSTEP_ASSIGN_OR_RETURN(features_,
                              TensorOf(DType::kFloat32, Shape({rows, graph_.input_shape().dim(0)}),
                                       Flatten(entry.at("features"))));
    labels_ = Tensor(DType::kInt32, Shape({rows}));
    std::ranges::copy(entry.at("labels").get<std::vector<int32_t>>(),
                      labels_.as<int32_t>().begin());
    const TensorView inputs[] = {features_.view(), labels_.view()};
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t tuples, optimizer_->LoadData(inputs, {}));
    comparison->Equal("tuples_per_device", entry.at("tuples_per_device"), tuples);
    comparison->Equal("per_device_batch_size", entry.at("per_device_batch_size"),
                      optimizer_->plan()->per_device_batch_size());
    return absl::OkStatus();
  }

  absl::Status Optimize(const json& entry, Comparison* comparison) {
    std::vector<TensorView> values;
    std::vector<MutableTensorView> gradients;
    for (const Tensor& value : values_) values.push_back(value.view());
    for (Tensor& gradient : gradients_) gradients.push_back(gradient.view());
    LOCKSTEP_ASSIGN_OR_RETURN(
        const worker::DeviceLosses losses,
        optimizer_->Optimize(entry.at("batch_index"), {towers_.get(), {values}, gradients, 0},
                             [](std::span<const int>) {}));
    Apply();
    comparison->NearSoFar("device_losses", Flatten(entry.at("device_losses")),
                          {losses.device_losses.begin(), losses.device_losses.end()});
    for (size_t i = 0; i + 1 < values_.size(); ++i) {
      const std::string& name = graph_.variables()[i].name;
      comparison->NearSoFar(name, Flatten(entry.at("variables").at(name)),
                            ElementsOf(values_[i].view()));
    }
    return absl::OkStatus();
  }

 private:
  Training(const json& script, ModelGraph graph)
      : graph_(std::move(graph)), device_(1), learning_rate_(script.at("learning_rate")) {}

  absl::Status MakeVariables(const json& script) {
    LOCKSTEP_ASSIGN_OR_RETURN(rule_, RuleOf(script.at("optimizer"), script.at("hyper_parameters")));
    for (const ModelVariable& variable : graph_.variables()) {
      gradients_.push_back(Tensor::Zeros(variable.dtype, variable.shape));
      std::vector<Tensor>& slots = slots_.emplace_back();
      if (variable.name == ModelGraph::kLossVariable) {
        values_.push_back(Tensor::Zeros(variable.dtype, variable.shape));
        continue;
      }
      LOCKSTEP_ASSIGN_OR_RETURN(values_.emplace_back(),
                                TensorOf(variable.dtype, variable.shape,
                                         Flatten(script.at("initial").at(variable.name))));
      for (const SlotSpec& slot : rule_->slots()) {
        slots.push_back(InitialSlot(slot, values_.back()));
      }
    }
    return absl::OkStatus();
  }

  absl::Status MakeTowers(const json& script) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        optimizer_, LocalSyncParallelOptimizer::Create(
                        {.max_per_device_batch_size = script.at("max_per_device_batch_size"),
                         .towers = script.at("towers")},
                        &device_));
    worker::TowerGroupOptions options{.batch_per_tower = script.at("max_per_device_batch_size")};
    for (int64_t batch = 1; batch < options.batch_per_tower; ++batch) {
      options.smaller_batches.push_back(batch);
    }
    LOCKSTEP_ASSIGN_OR_RETURN(options.reducer, ReducerOf(script));
    LOCKSTEP_ASSIGN_OR_RETURN(towers_,
                              TowerGroup::Create(graph_, &device_, worker::cpu::Ops(), options));
    return absl::OkStatus();
  }

  // A statistic's gradient is its new value.
  void Apply() {
    ++version_;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (!graph_.variables()[i].trainable) {
        std::ranges::copy(gradients_[i].as<float>(), values_[i].as<float>().begin());
        continue;
      }
      std::vector<MutableTensorView> slots;
      for (Tensor& slot : slots_[i]) slots.push_back(slot.view());
      const TensorView gradient = gradients_[i].view();
      rule_->Apply({.old_value = values_[i].view(),
                    .gradients = {&gradient, 1},
                    .new_value = values_[i].view(),
                    .slots = slots,
                    .learning_rate = learning_rate_,
                    .version = version_});
    }
  }

  const ModelGraph graph_;
  worker::CpuDevice device_;
  const float learning_rate_;
  std::unique_ptr<const UpdateRule> rule_;
  std::vector<Tensor> values_;  // by variable of the graph, as the next two
  std::vector<Tensor> gradients_;
  std::vector<std::vector<Tensor>> slots_;
  std::unique_ptr<LocalSyncParallelOptimizer> optimizer_;
  std::unique_ptr<TowerGroup> towers_;
  Tensor features_;  // of the load
  Tensor labels_;
  int64_t version_ = 0;
};

}  // namespace

absl::Status ReplayLocalSync(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<Training> training, Training::Create(script));
  int number = 0;
  for (const json& entry : script.at("log")) {
    comparison->Enter(number++);
    LOCKSTEP_RETURN_IF_ERROR(entry.at("op") == "load_data" ? training->Load(entry, comparison)
                                                           : training->Optimize(entry, comparison));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
