#include "worker/tower/model_tower.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/casts.h"

namespace lockstep::worker {
namespace {

// What a device has no memory for, in words for the user.
std::string Activations(const ModelGraph& graph, const TowerSchedule& schedule, int64_t batch) {
  const auto bytes = [&](const ScheduledOp& op) {
    const Shape& shape = graph.nodes()[schedule.shape_nodes[op.output]].output;
    return static_cast<size_t>(batch * shape.num_elements()) * SizeOf(schedule.types[op.output]);
  };
  const ScheduledOp& largest = *std::ranges::max_element(schedule.ops, {}, bytes);
  return absl::StrCat("activations of ", CountText(static_cast<uint64_t>(batch), "example"),
                      ", the largest of layer \"", graph.nodes()[largest.node].name, "\" with ",
                      bytes(largest), " bytes");
}

std::string ValuesAndGradients(const ModelGraph& graph, std::span<const size_t> bytes) {
  const auto largest = std::ranges::max_element(bytes);
  return absl::StrCat("inputs, values and gradients, the largest of variable \"",
                      graph.variables()[largest - bytes.begin()].name, "\" with ", *largest,
                      " bytes");
}

}  // namespace

ModelTower::ModelTower(const ModelGraph& graph, Device* device, const OpTable& ops,
                       const TowerOptions& options)
    : graph_(graph),
      options_(options),
      schedule_(WithActivations(graph_, MakeTowerSchedule(graph_), ops.activations())),
      device_(device),
      ops_(ops),
      staging_(device) {}

absl::Status ModelTower::Prepare() {
  device_->MakeCurrent();
  LOCKSTEP_ASSIGN_OR_RETURN(context_, ops_.CreateContext(device_));
  LOCKSTEP_ASSIGN_OR_RETURN(stream_, device_->CreateStream({.background = options_.background}));
  const std::vector<size_t> bytes = AddPlaces();
  LOCKSTEP_RETURN_IF_ERROR(Annotate(staging_.Allocate(), ValuesAndGradients(graph_, bytes)));
  LOCKSTEP_ASSIGN_OR_RETURN(row_lists_, RowLists::Create(MostListedRows(), device_));
  LOCKSTEP_RETURN_IF_ERROR(AllocateResults());
  LOCKSTEP_RETURN_IF_ERROR(MakePasses());
  return MakeEvents();
}

std::vector<size_t> ModelTower::AddPlaces() {
  const int64_t batch = *std::ranges::max_element(options_.batches);
  const int64_t labels = batch * graph_.labels_per_example();
  const int64_t outputs = labels * graph_.num_outputs();
  for (int input = 0; input <= graph_.num_state_inputs(); ++input) {
    const int64_t elements = batch * graph_.nodes()[input].output.num_elements();
    places_.inputs.push_back(staging_.AddPlace(elements * sizeof(float)));
  }
  const int64_t label_bytes =
      graph_.is_classifier() ? labels * sizeof(int32_t) : outputs * sizeof(float);
  places_.labels = staging_.AddPlace(graph_.uses_labels() ? label_bytes : 0);
  places_.random_key = staging_.AddPlace(sizeof(uint64_t));
  places_.sums = staging_.AddPlace(Loss::kNumSums * sizeof(double));
  places_.predictions = staging_.AddPlace(outputs * sizeof(float));
  most_rows_ = MostListedRows();
  for (size_t i = 0; options_.whole_tables && i < most_rows_.size(); ++i) {
    if (most_rows_[i] > 0) most_rows_[i] = graph_.variables()[i].shape.dim(0);
  }
  std::vector<size_t> of_values;
  for (size_t i = 0; i < graph_.variables().size(); ++i) {
    const ModelVariable& variable = graph_.variables()[i];
    const size_t bytes = of_values.emplace_back(MostOf(variable, most_rows_[i]).num_elements() *
                                                SizeOf(variable.dtype));
    places_.values.push_back(staging_.AddPlace(bytes));
    const bool has_gradient = options_.training && !variable.frozen;
    places_.gradients.push_back(staging_.AddPlace(
        has_gradient ? bytes : 0,
        has_gradient && options_.own_gradients ? Staging::kOwn : Staging::kShared));
  }
  return of_values;
}

std::vector<int64_t> ModelTower::MostListedRows() const {
  const int64_t batch = *std::ranges::max_element(options_.batches);
  return BatchRows(graph_).MostRows(options_.row_examples > 0 ? options_.row_examples : batch);
}

Shape ModelTower::PredictionsOf(int64_t examples) const {
  return Shape({examples * graph_.labels_per_example(), graph_.num_outputs()});
}

absl::Status ModelTower::AllocateResults() {
  const int64_t batch = *std::ranges::max_element(options_.batches);
  results_.sums = {DType::kFloat64, Shape({Loss::kNumSums}), nullptr};
  results_.loss = {DType::kFloat32, Shape({1}), nullptr};
  results_.predictions = {DType::kFloat32, PredictionsOf(batch), nullptr};
  const size_t loss_at = Tensor::RoomFor(results_.sums.num_bytes());
  const size_t predictions_at = loss_at + Tensor::RoomFor(results_.loss.num_bytes());
  absl::StatusOr<DeviceBuffer> memory =
      device_->AllocatePinned(predictions_at + results_.predictions.num_bytes());
  if (!memory.ok()) return Annotate(memory.status(), "losses and predictions of a tower");
  results_.memory = *std::move(memory);
  results_.sums.data = results_.memory.get();
  results_.loss.data = results_.memory.get() + loss_at;
  results_.predictions.data = results_.memory.get() + predictions_at;
  return absl::OkStatus();
}

absl::Status ModelTower::MakePasses() {
  size_t bytes = 0;
  for (const int64_t batch : options_.batches) {
    passes_.push_back(std::make_unique<Pass>(
        graph_, schedule_,
        PassOptions{.batch = batch, .training = options_.training, .most_rows = most_rows_}));
    bytes = std::max(bytes, passes_.back()->memory_bytes());
  }
  absl::StatusOr<DeviceBuffer> memory = device_->Allocate(bytes);
  if (!memory.ok()) {
    return Annotate(memory.status(),
                    Activations(graph_, schedule_, *std::ranges::max_element(options_.batches)));
  }
  memory_ = *std::move(memory);
  for (const std::unique_ptr<Pass>& pass : passes_) {
    LOCKSTEP_RETURN_IF_ERROR(pass->Prepare(graph_, schedule_, memory_.get(), ops_, context_.get()));
  }
  return absl::OkStatus();
}

absl::Status ModelTower::MakeEvents() {
  const size_t count = graph_.variables().size();
  call_.inputs.resize(places_.inputs.size());
  call_.values.resize(count);
  call_.gradient_views.resize(count);
  call_.gradients.resize(count);
  LOCKSTEP_ASSIGN_OR_RETURN(finished_, device_->CreateEvent());
  for (size_t i = 0; i < count; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(complete_.emplace_back(), device_->CreateEvent());
  }
  return absl::OkStatus();
}

absl::StatusOr<Pass*> ModelTower::PassFor(int64_t size) {
  for (const std::unique_ptr<Pass>& pass : passes_) {
    if (pass->batch() == size) return pass.get();
  }
  return absl::InvalidArgumentError(absl::StrCat("a batch of ", size,
                                                 " examples: the tower was made for ",
                                                 absl::StrJoin(options_.batches, ", ")));
}

absl::Status ModelTower::BringInputs(const Batch& batch) {
  const size_t states = batch.loaded ? batch.loaded->state_inputs.size() : batch.states.size();
  if (1 + states != call_.inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "state_inputs: the model takes ", call_.inputs.size() - 1, ", the batch has ", states));
  }
  for (size_t input = 0; input < call_.inputs.size(); ++input) {
    if (batch.loaded) {
      const LoadedRows& rows = *batch.loaded;
      LOCKSTEP_ASSIGN_OR_RETURN(
          call_.inputs[input],
          BringLoaded(rows, places_.inputs[input],
                      input == 0 ? rows.features : rows.state_inputs[input - 1]));
      continue;
    }
    const Tensor& host = input == 0 ? batch.features : batch.states[input - 1];
    LOCKSTEP_ASSIGN_OR_RETURN(call_.inputs[input],
                              staging_.ToDevice(places_.inputs[input], host.view(), stream_.get()));
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorView> ModelTower::LabelsOf(const Batch& batch) {
  if (!graph_.uses_labels()) return TensorView();
  if (batch.loaded) return BringLoaded(*batch.loaded, places_.labels, batch.loaded->labels);
  return staging_.ToDevice(places_.labels, batch.labels.view(), stream_.get());
}

absl::StatusOr<TensorView> ModelTower::BringLoaded(const LoadedRows& rows, int place,
                                                   const TensorView& view) {
  if (!rows.place_varies || device_->is_host()) return view;
  return staging_.CopyOnDevice(place, view, stream_.get());
}

absl::Status ModelTower::BringOperands(const Batch& batch, const VariableValues& variables,
                                       uint64_t random_key) {
  LOCKSTEP_RETURN_IF_ERROR(BringInputs(batch));
  for (size_t i = 0; i < call_.values.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        call_.values[i], staging_.ToDevice(places_.values[i], variables.views[i], stream_.get()));
  }
  LOCKSTEP_RETURN_IF_ERROR(row_lists_.Bring(variables.rows, stream_.get()));
  call_.random_key = random_key;
  LOCKSTEP_ASSIGN_OR_RETURN(
      call_.random_key_on_device,
      staging_.ToDevice(places_.random_key, {DType::kInt64, Shape({1}), &call_.random_key},
                        stream_.get()));
  return absl::OkStatus();
}

absl::Status ModelTower::Forward(Pass* pass, Mode mode) {
  return pass->Forward(mode, call_.inputs, call_.values, row_lists_.on_device(),
                       static_cast<const uint64_t*>(call_.random_key_on_device.data),
                       stream_.get());
}

absl::StatusOr<std::span<const TowerGradient>> ModelTower::Train(
    const Batch& batch, const VariableValues& variables,
    std::span<const MutableTensorView> gradients, uint64_t random_key) {
  LOCKSTEP_CHECK(options_.training);
  device_->CountTrainingStep();
  LOCKSTEP_ASSIGN_OR_RETURN(Pass* const pass, PassFor(batch.size()));
  LOCKSTEP_RETURN_IF_ERROR(BringOperands(batch, variables, random_key));
  LOCKSTEP_ASSIGN_OR_RETURN(call_.labels, LabelsOf(batch));
  for (size_t i = 0; i < gradients.size(); ++i) {
    call_.gradient_views[i] = gradients[i];
    if (graph_.variables()[i].frozen) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(call_.gradient_views[i],
                              staging_.OnDevice(places_.gradients[i], gradients[i]));
  }
  LOCKSTEP_RETURN_IF_ERROR(EnqueueOrLaunchStep(pass));
  for (size_t i = 0; i < gradients.size(); ++i) {
    TowerGradient& gradient = call_.gradients[i];
    if (gradient.ready == nullptr) continue;
    gradient.view = call_.gradient_views[i];
    gradient.old = call_.values[i];
  }
  return call_.gradients;
}

absl::Status ModelTower::EnqueueOrLaunchStep(Pass* pass) {
  if (device_->is_host()) return EnqueueStep(pass);  // where there is nothing to gain
  // Values, gradients and lists of rows are in their places. So are inputs and labels, but for
  // rows that were copied ahead to one of few places.
  const std::span<const TableRows> rows = row_lists_.on_device();
  call_.addresses.assign({pass, rows.empty() ? nullptr : rows.data(), call_.labels.data});
  for (const TensorView& input : call_.inputs) call_.addresses.push_back(input.data);
  return graphs_.Enqueue(
      call_.addresses, [this, pass] { return EnqueueStep(pass); }, stream_.get());
}

absl::Status ModelTower::EnqueueStep(Pass* pass) {
  LOCKSTEP_RETURN_IF_ERROR(Forward(pass, Mode::kTraining));
  const auto complete = [this](std::span<const int> ready) {
    Event* const event = complete_[ready[0]].get();
    stream_->Record(event);
    for (const int variable : ready) call_.gradients[variable].ready = event;
  };
  const int loss = graph_.loss_variable();
  LOCKSTEP_RETURN_IF_ERROR(pass->Train(call_.labels, call_.gradient_views[loss], stream_.get()));
  // Before the event: who waits for that may write over it.
  Staging::CopyToHost(call_.gradient_views[loss], results_.loss, stream_.get());
  complete({&loss, 1});
  return pass->Backward(call_.gradient_views, complete, stream_.get());
}

absl::Status ModelTower::Finish() {
  stream_->Record(finished_.get());
  return finished_->Wait();
}

absl::Status ModelTower::FinishAfter(absl::Status enqueued) {
  // The caller may free the arguments, which copies of a call that has failed may still read.
  enqueued.Update(Finish());
  return enqueued;
}

absl::StatusOr<Tower::Evaluation> ModelTower::Evaluate(const Batch& batch,
                                                       const VariableValues& variables) {
  if (batch.size() == 0) return Evaluation();
  LOCKSTEP_ASSIGN_OR_RETURN(Pass* const pass, PassFor(batch.size()));
  LOCKSTEP_RETURN_IF_ERROR(FinishAfter(EnqueueEvaluation(pass, batch, variables)));
  const std::span<const double> result = results_.sums.as<double>();
  return Evaluation{batch.size(), static_cast<int64_t>(result[Loss::kCorrect]),
                    result[Loss::kLossSum]};
}

absl::Status ModelTower::EnqueueEvaluation(Pass* pass, const Batch& batch,
                                           const VariableValues& variables) {
  LOCKSTEP_RETURN_IF_ERROR(BringOperands(batch, variables, /*random_key=*/0));
  LOCKSTEP_RETURN_IF_ERROR(Forward(pass, Mode::kInference));
  LOCKSTEP_ASSIGN_OR_RETURN(const TensorView labels, LabelsOf(batch));
  LOCKSTEP_ASSIGN_OR_RETURN(const MutableTensorView sums,
                            staging_.OnDevice(places_.sums, results_.sums));
  LOCKSTEP_RETURN_IF_ERROR(pass->Evaluate(labels, sums, stream_.get()));
  Staging::CopyToHost(sums, results_.sums, stream_.get());
  return absl::OkStatus();
}

absl::StatusOr<TensorView> ModelTower::Predict(const Batch& batch, const VariableValues& variables,
                                               uint64_t random_key) {
  const int64_t size = batch.size();
  MutableTensorView predictions = results_.predictions;
  predictions.shape = PredictionsOf(size);
  if (size == 0) return TensorView(predictions);
  LOCKSTEP_ASSIGN_OR_RETURN(Pass* const pass, PassFor(size));
  LOCKSTEP_RETURN_IF_ERROR(
      FinishAfter(EnqueuePrediction(pass, batch, variables, random_key, predictions)));
  return TensorView(predictions);
}

absl::Status ModelTower::EnqueuePrediction(Pass* pass, const Batch& batch,
                                           const VariableValues& variables, uint64_t random_key,
                                           const MutableTensorView& predictions) {
  LOCKSTEP_RETURN_IF_ERROR(BringOperands(batch, variables, random_key));
  LOCKSTEP_RETURN_IF_ERROR(Forward(pass, Mode::kInference));
  LOCKSTEP_ASSIGN_OR_RETURN(const MutableTensorView on_device,
                            staging_.OnDevice(places_.predictions, predictions));
  LOCKSTEP_RETURN_IF_ERROR(pass->Predict(on_device, stream_.get()));
  Staging::CopyToHost(on_device, predictions, stream_.get());
  return absl::OkStatus();
}

}  // namespace lockstep::worker
