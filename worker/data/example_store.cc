#include "worker/data/example_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/fit.h"
#include "common/dataset/state_rows.h"
#include "worker/data/labels.h"
#include "worker/data/row_indices.h"

namespace lockstep::worker {
namespace {

// A constant number of elements in the inner loop makes vector code of it.
constexpr int64_t kBlock = 16;

template <typename T>
void Convert(const T* in, int64_t count, float offset, float scale, float* out) {
  int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) {
      out[i + k] = (static_cast<float>(in[i + k]) - offset) * scale;
    }
  }
  for (; i < count; ++i) out[i] = (static_cast<float>(in[i]) - offset) * scale;
}

}  // namespace

absl::StatusOr<ExampleStore> ExampleStore::Open(const DataDef& data, Split split,
                                                const ExampleSpec& spec, const FileShard& shard) {
  if (!std::isfinite(data.offset()) || !std::isfinite(data.scale())) {
    return absl::InvalidArgumentError(absl::StrCat("data: expected a finite offset and scale, got ",
                                                   data.offset(), " and ", data.scale(),
                                                   ". Remedy: correct them in the job file."));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckStateInputs(data, spec));
  ExampleStore store;
  LOCKSTEP_ASSIGN_OR_RETURN(store.table_, ReadExamples(data, split, shard));
  LOCKSTEP_RETURN_IF_ERROR(CheckExamplesFit(store.table_.FileOf(0).features,
                                            store.table_.features.shape, spec.input_shape));
  if (!spec.row_indices.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckIndicesKept(data));
    LOCKSTEP_RETURN_IF_ERROR(CheckRowIndices(store.table_, spec));
  }
  if (store.table_.has_labels() && spec.uses_labels) {
    LOCKSTEP_ASSIGN_OR_RETURN(store.labels_, MakeLabels(store.table_, spec, data.num_classes()));
    store.table_.labels = Records();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(store.states_, MakeStates(data, store.table_.states, spec));
  store.table_.states.clear();
  // Only errors name lines.
  store.table_.lines = std::vector<int64_t>();
  for (const ExampleSpec::StateRow& state : spec.state_inputs) store.units_.push_back(state.units);
  store.input_shape_ = spec.input_shape;
  store.offset_ = data.offset();
  store.scale_ = data.scale() == 0 ? 1 : data.scale();
  return store;
}

size_t ExampleStore::AlignedBytes(int64_t n) const {
  const auto aligned = [n](int64_t bytes_per_example) {
    return Tensor::RoomFor(static_cast<size_t>(n * bytes_per_example));
  };
  const int64_t of_label = has_labels() ? labels_.num_bytes() / labels_.shape().dim(0) : 0;
  size_t bytes = aligned(input_shape_.num_elements() * sizeof(float)) + aligned(of_label);
  for (const int64_t units : units_) bytes += aligned(units * sizeof(float));
  return bytes;
}

Batch ExampleStore::MakeBatch(int64_t n, const TensorMaker& make) const {
  const auto batched = [n](absl::Span<const int64_t> dims) {
    std::vector<int64_t> all = {n};
    all.insert(all.end(), dims.begin(), dims.end());
    return Shape(all);
  };
  Batch batch;
  batch.features = make(DType::kFloat32, batched(input_shape_.dims()));
  if (has_labels()) {
    batch.labels = make(labels_.dtype(), batched(labels_.shape().dims().subspan(1)));
  }
  for (const int64_t units : units_) {
    Tensor& states = batch.states.emplace_back(make(DType::kFloat32, Shape({n, units})));
    std::memset(states.data(), 0, states.num_bytes());
  }
  return batch;
}

int64_t ExampleStore::bytes_per_example() const {
  int64_t bytes = sizeof(int64_t) + input_shape_.num_elements() * sizeof(float);
  if (has_labels()) bytes += labels_.num_bytes() / labels_.shape().dim(0);
  for (const int64_t units : units_) bytes += units * sizeof(float);
  return bytes;
}

float* ExampleStore::Row(int64_t row, Batch* batch) const {
  return batch->features.as<float>().data() + row * input_shape_.num_elements();
}

void ExampleStore::CopyTo(int64_t example, int64_t row, Batch* batch) const {
  const int64_t size = input_shape_.num_elements();
  float* out = Row(row, batch);
  VisitElements(table_.features, [&](auto all) {
    Convert(all.data() + example * size, size, offset_, scale_, out);
  });
  CopyLabel(example, row, batch);
  CopyStates(example, row, batch);
}

void ExampleStore::CopyShiftedTo(int64_t example, Shift shift, int64_t row, Batch* batch) const {
  const int64_t height = input_shape_.dim(0);
  const int64_t line = input_shape_.num_elements() / height;
  const int64_t channels = line / input_shape_.dim(1);
  const int64_t moved = std::clamp(shift.dx * channels, -line, line);
  const int64_t left = std::max<int64_t>(moved, 0);
  const int64_t kept = line - std::abs(moved);
  float* out = Row(row, batch);
  VisitElements(table_.features, [&](auto all) {
    const auto* image = all.data() + example * height * line;
    for (int64_t y = 0; y < height; ++y, out += line) {
      const int64_t from = y - shift.dy;
      if (from < 0 || from >= height) {
        std::fill_n(out, line, 0.0f);
        continue;
      }
      std::fill_n(out, left, 0.0f);
      Convert(image + from * line + left - moved, kept, offset_, scale_, out + left);
      std::fill(out + left + kept, out + line, 0.0f);
    }
  });
  CopyLabel(example, row, batch);
  CopyStates(example, row, batch);
}

void ExampleStore::CopyLabel(int64_t example, int64_t row, Batch* batch) const {
  if (!has_labels()) return;
  const size_t size = labels_.num_bytes() / labels_.shape().dim(0);
  std::memcpy(static_cast<std::byte*>(batch->labels.data()) + row * size,
              static_cast<const std::byte*>(labels_.data()) + example * size, size);
}

void ExampleStore::CopyStates(int64_t example, int64_t row, Batch* batch) const {
  for (size_t state = 0; state < states_.size(); ++state) {
    if (states_[state].num_elements() == 0) continue;
    std::ranges::copy(states_[state].as<float>().subspan(example * units_[state], units_[state]),
                      batch->states[state].as<float>().begin() + row * units_[state]);
  }
}

}  // namespace lockstep::worker
