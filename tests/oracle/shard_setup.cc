#include "tests/oracle/shard_setup.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"
#include "tests/oracle/numbers.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

// The extents of nested lists.
void AddDims(const json& nested, VariableSpec* spec) {
  if (!nested.is_array()) return;
  spec->add_dims(static_cast<int64_t>(nested.size()));
  AddDims(nested.at(0), spec);
}

}  // namespace

const Command& ChiefOfScript() {
  static const Command* const kChief = [] {
    auto* const command = new Command;
    command->set_job(1);
    command->set_term(1);
    return command;
  }();
  return *kChief;
}

ps::WorkerIdentity IdentityOf(uint32_t worker) {
  return {.job = ChiefOfScript().job(),
          .epoch = Epoch(1),
          .worker = WorkerIndex(worker),
          .incarnation = Incarnation(worker + 1)};
}

Placement PlacementOf(const json& initial, uint32_t num_shards) {
  Placement placement;
  placement.set_shards(num_shards);
  for (const auto& [name, values] : initial.items()) {
    const auto id = static_cast<uint32_t>(placement.variables_size());
    VariableSpec* spec = placement.add_variables();
    spec->set_id(id);
    spec->set_name(name);
    spec->set_dtype(FLOAT32);
    AddDims(values, spec);
    spec->set_shard(id % num_shards);
    spec->set_trainable(true);
  }
  return placement;
}

absl::StatusOr<OptimizerDef> OptimizerOf(const json& script) {
  const std::string name = script.at("optimizer");
  const json& hyper = script.at("hyper_parameters");
  OptimizerDef optimizer;
  if (name == "sgd") {
    optimizer.mutable_sgd();
  } else if (name == "momentum" || name == "nesterov") {
    optimizer.mutable_momentum()->set_momentum(hyper.at("momentum"));
    optimizer.mutable_momentum()->set_nesterov(name == "nesterov");
  } else if (name == "adam" || name == "adamw" || name == "lazy_adam") {
    OptimizerDef::Adam* adam = optimizer.mutable_adam();
    adam->set_beta1(hyper.at("beta1"));
    adam->set_beta2(hyper.at("beta2"));
    adam->set_epsilon(hyper.at("epsilon"));
    adam->set_lazy(name == "lazy_adam");
    adam->set_weight_decay(hyper.value("weight_decay", 0.0f));
  } else if (name == "adagrad") {
    optimizer.mutable_adagrad()->set_initial_accumulator_value(
        hyper.at("initial_accumulator_value"));
  } else if (name == "adadelta") {
    optimizer.mutable_adadelta()->set_rho(hyper.at("rho"));
    optimizer.mutable_adadelta()->set_epsilon(hyper.at("epsilon"));
  } else if (name == "rmsprop" || name == "rmsprop_centered") {
    OptimizerDef::RmsProp* rmsprop = optimizer.mutable_rmsprop();
    rmsprop->set_decay(hyper.at("decay"));
    rmsprop->set_momentum(hyper.at("momentum"));
    rmsprop->set_epsilon(hyper.at("epsilon"));
    rmsprop->set_centered(name == "rmsprop_centered");
  } else if (name == "ftrl") {
    OptimizerDef::Ftrl* ftrl = optimizer.mutable_ftrl();
    ftrl->set_learning_rate_power(hyper.at("learning_rate_power"));
    ftrl->set_initial_accumulator_value(hyper.at("initial_accumulator_value"));
    ftrl->set_l1_regularization_strength(hyper.at("l1_regularization_strength"));
    ftrl->set_l2_regularization_strength(hyper.at("l2_regularization_strength"));
    ftrl->set_l2_shrinkage_regularization_strength(
        hyper.at("l2_shrinkage_regularization_strength"));
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no shard trains with \"", name, "\""));
  }
  return optimizer;
}

ScriptPush::ScriptPush(ps::WorkerIdentity worker, PushSeq push_seq, GlobalStep local_step)
    : order_{.worker = worker, .push_seq = push_seq, .local_step = local_step} {}

absl::Status ScriptPush::Add(const VariableSpec& variable, const std::vector<double>& gradient) {
  LOCKSTEP_ASSIGN_OR_RETURN(const VariableType type, TypeOf(variable));
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor value, TensorOf(type.dtype, type.shape, gradient));
  order_.pieces.push_back({.variable = VariableId(variable.id()),
                           .dtype = type.dtype,
                           .shape = type.shape,
                           .size = value.num_bytes()});
  values_.push_back(std::move(value));
  return absl::OkStatus();
}

absl::Status ScriptPush::PushTo(ps::Shard* shard) {
  ReceivedTensors::Segments segments;
  for (const Tensor& value : values_) segments.push_back(value.view().bytes());
  order_.tensors = ReceivedTensors(std::move(segments));
  return shard->Push(order_).status();
}

}  // namespace lockstep::oracle
