#include "worker/local_sync/local_sync_parallel_optimizer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

enum Input { kFeatures, kLabels, kNumInputs };

absl::Status CheckArrays(absl::string_view name, std::span<const TensorView> arrays,
                         size_t expected) {
  if (arrays.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("load_data: ", name, ": expected ", expected,
                                                   " arrays, got ", arrays.size(),
                                                   ". Remedy: load as many as the model declares"));
  }
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.rank() > 0 && arrays[i].shape.dim(0) == arrays[0].shape.dim(0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("load_data: ", name, "[", i, "]: expected as many rows as ", name,
                     "[0] has, of shape ", arrays[0].shape.ToString(), ", got shape ",
                     arrays[i].shape.ToString(), ". Remedy: load equally many rows"));
  }
  return absl::OkStatus();
}

// A sequence of rows is a tensor too.
absl::Status CheckRank(std::span<const TensorView> arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].shape.rank() < Shape::kMaxRank) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("load_data: inputs[", i, "]: expected fewer than ", Shape::kMaxRank,
                     " dimensions of rows in sequences, got shape ", arrays[i].shape.ToString(),
                     ". Remedy: load rows of fewer dimensions"));
  }
  return absl::OkStatus();
}

// The rows as sequences of so many.
TensorView AsSequences(TensorView rows, int64_t max_seq_len) {
  if (max_seq_len == 1) return rows;
  std::array<int64_t, Shape::kMaxRank> dims;
  const absl::Span<const int64_t> all = rows.shape.dims();
  dims[0] = all[0] / max_seq_len;
  dims[1] = max_seq_len;
  std::ranges::copy(all.subspan(1), dims.begin() + 2);
  rows.shape = Shape(absl::MakeConstSpan(dims).subspan(0, all.size() + 1));
  return rows;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalSyncParallelOptimizer>> LocalSyncParallelOptimizer::Create(
    const LocalSyncOptions& options, const TowerDevices& devices) {
  // What no load could mend.
  LOCKSTEP_RETURN_IF_ERROR(
      LoadPlan::Create({.rows = options.towers,
                        .state_rows = std::nullopt,
                        .max_per_device_batch_size = options.max_per_device_batch_size,
                        .towers = options.towers})
          .status());
  LOCKSTEP_ASSIGN_OR_RETURN(auto data, TowerData::Create(devices, options.towers));
  return std::unique_ptr<LocalSyncParallelOptimizer>(
      new LocalSyncParallelOptimizer(options, std::move(data)));
}

LocalSyncParallelOptimizer::LocalSyncParallelOptimizer(const LocalSyncOptions& options,
                                                       std::unique_ptr<TowerData> data)
    : options_(options), data_(std::move(data)), batches_(options.towers) {
  for (Batch& batch : batches_) {
    batch.loaded.emplace().state_inputs.resize(options.state_inputs);
    batch.loaded->place_varies = true;
  }
}

absl::StatusOr<int64_t> LocalSyncParallelOptimizer::LoadData(
    std::span<const TensorView> inputs, std::span<const TensorView> state_inputs) {
  plan_.reset();
  LOCKSTEP_RETURN_IF_ERROR(CheckArrays("inputs", inputs, kNumInputs));
  LOCKSTEP_RETURN_IF_ERROR(CheckArrays("state_inputs", state_inputs, options_.state_inputs));
  LoadRequest request{.rows = inputs[kFeatures].shape.dim(0),
                      .state_rows = std::nullopt,
                      .max_per_device_batch_size = options_.max_per_device_batch_size,
                      .towers = options_.towers};
  if (!state_inputs.empty()) request.state_rows = state_inputs[0].shape.dim(0);
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadPlan plan, LoadPlan::Create(request));
  if (plan.max_seq_len() > 1) LOCKSTEP_RETURN_IF_ERROR(CheckRank(inputs));
  LOCKSTEP_RETURN_IF_ERROR(data_->Load(plan, inputs, state_inputs));
  host_inputs_.assign(inputs.begin(), inputs.end());
  host_states_.assign(state_inputs.begin(), state_inputs.end());
  plan_ = plan;
  return plan.tuples_per_device();
}

absl::Status LocalSyncParallelOptimizer::CheckLoaded() const {
  if (plan_.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "optimize: No data loaded? Remedy: call load_data before the first step");
}

absl::StatusOr<std::vector<Batch>*> LocalSyncParallelOptimizer::BatchesAt(int64_t batch_index) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLoaded());
  LOCKSTEP_RETURN_IF_ERROR(plan_->CheckIndex(batch_index));
  const RowSpan rows = plan_->RowsAt(batch_index);
  for (int64_t tower = 0; tower < options_.towers; ++tower) {
    const int64_t on_host = plan_->RowsOf(tower).begin + rows.begin;
    LoadedRows* loaded = &*batches_[tower].loaded;
    const auto sequences = [this](const TensorView& view) {
      return AsSequences(view, plan_->max_seq_len());
    };
    loaded->host_features = sequences(RowRange(host_inputs_[kFeatures], on_host, rows.count));
    loaded->features = sequences(data_->Rows(tower, kFeatures, rows));
    loaded->labels = sequences(data_->Rows(tower, kLabels, rows));
    for (size_t state = 0; state < loaded->state_inputs.size(); ++state) {
      loaded->state_inputs[state] =
          data_->Rows(tower, kNumInputs + state, plan_->StateRowsAt(batch_index));
    }
  }
  return &batches_;
}

absl::StatusOr<DeviceLosses> LocalSyncParallelOptimizer::Optimize(
    int64_t batch_index, const StepArguments& step, const TowerGroup::GradientReady& ready) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<Batch>* const batches, BatchesAt(batch_index));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const float loss,
      step.towers->Train(*batches, step.variables, step.gradients, step.random_key, ready));
  return DeviceLosses{step.towers->device_losses(), loss};
}

Batch LocalSyncParallelOptimizer::Unsplit(int64_t batch_index) const {
  const auto gather = [this](const TensorView& array, const auto& rows_of, const RowSpan& rows,
                             int64_t rows_per_example) {
    std::vector<int64_t> dims(array.shape.dims().begin(), array.shape.dims().end());
    dims[0] = options_.towers * rows.count;
    const TensorView whole{array.dtype, Shape(dims), nullptr};
    Tensor all(array.dtype, AsSequences(whole, rows_per_example).shape);
    std::byte* to = static_cast<std::byte*>(all.data());
    for (int64_t tower = 0; tower < options_.towers; ++tower) {
      const TensorView part = RowRange(array, rows_of(tower).begin + rows.begin, rows.count);
      std::memcpy(to, part.data, part.num_bytes());
      to += part.num_bytes();
    }
    return all;
  };
  const auto rows_of = [this](int64_t tower) { return plan_->RowsOf(tower); };
  const auto states_of = [this](int64_t tower) { return plan_->StateRowsOf(tower); };
  const RowSpan rows = plan_->RowsAt(batch_index);
  Batch batch;
  batch.features = gather(host_inputs_[kFeatures], rows_of, rows, plan_->max_seq_len());
  batch.labels = gather(host_inputs_[kLabels], rows_of, rows, plan_->max_seq_len());
  for (const TensorView& state : host_states_) {
    batch.states.push_back(gather(state, states_of, plan_->StateRowsAt(batch_index), 1));
  }
  return batch;
}

absl::StatusOr<float> LocalSyncParallelOptimizer::GetCommonLoss(
    int64_t batch_index, const CommonLossArguments& arguments) {
  LOCKSTEP_RETURN_IF_ERROR(CheckLoaded());
  LOCKSTEP_RETURN_IF_ERROR(plan_->CheckIndex(batch_index));
  const Batch batch = Unsplit(batch_index);
  // The new values of statistics are among the gradients, which nobody applies.
  const absl::Status trained =
      arguments.tower->Train(batch, arguments.variables, arguments.gradients, arguments.random_key)
          .status();
  const absl::Status finished = arguments.tower->Finish();
  LOCKSTEP_RETURN_IF_ERROR(trained);
  LOCKSTEP_RETURN_IF_ERROR(finished);
  return arguments.tower->loss();
}

}  // namespace lockstep::worker
