#include "worker/data/replica_batches.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {
namespace {

// Of one step of one replica: 64 GiB. A batch beyond is a mistake in the job.
constexpr int64_t kMostElements = int64_t{1} << 34;

absl::StatusOr<ShuffleWindow> WindowOf(const DataDef& data, int64_t num_examples) {
  if (data.shuffle_buffer() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.shuffle_buffer: expected 0 or more examples, got ",
                     data.shuffle_buffer(), ". Remedy: leave it out for a full permutation."));
  }
  if (data.no_shuffle() && data.shuffle_buffer() > 0) {
    return absl::InvalidArgumentError(
        "data: expected at most one of no_shuffle and shuffle_buffer, got both. Remedy: remove one "
        "of them.");
  }
  if (data.no_shuffle()) return ShuffleWindow{1};
  return ShuffleWindow{data.shuffle_buffer() == 0 ? num_examples : data.shuffle_buffer()};
}

absl::Status CheckShift(int64_t most, const ExampleStore& store) {
  if (most == 0) return absl::OkStatus();
  if (!store.is_image()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "data.augmentation.shift: expected images [height,width] or [height,width,channels], got "
        "examples of shape ",
        store.input_shape().ToString(), ". Remedy: remove the augmentation."));
  }
  const int64_t side = std::min(store.input_shape().dim(0), store.input_shape().dim(1));
  if (most > 0 && most < side) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "data.augmentation.shift: expected 0 to ", side - 1, " pixels for images of shape ",
      store.input_shape().ToString(), ", got ", most, ". Remedy: shift by less."));
}

absl::Status CheckMemory(const Slice& slice, const Shape& example) {
  const auto elements =
      CheckedMultiply(slice.towers() * slice.batch_per_tower(), example.num_elements());
  if (elements && *elements <= kMostElements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "batch per tower: expected at most ",
      kMostElements / slice.towers() / std::max<int64_t>(example.num_elements(), 1),
      " examples of shape ", example.ToString(), " for ", slice.towers(), " towers, got ",
      slice.batch_per_tower(), ". Remedy: use a smaller batch or more workers."));
}

}  // namespace

absl::StatusOr<ReplicaBatches> ReplicaBatches::Open(const DataDef& data, const ExampleSpec& spec,
                                                    const PipelineOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Slice slice, Slice::Create(options));
  LOCKSTEP_ASSIGN_OR_RETURN(auto store, ExampleStore::Open(data, Split::kTrain, spec));
  LOCKSTEP_RETURN_IF_ERROR(CheckMemory(slice, store.input_shape()));
  const int64_t num_examples = store.num_examples();
  LOCKSTEP_ASSIGN_OR_RETURN(const ShuffleWindow window, WindowOf(data, num_examples));
  const int64_t shift = data.augmentation().shift();
  LOCKSTEP_RETURN_IF_ERROR(CheckShift(shift, store));
  return ReplicaBatches(std::move(store), slice, IndexStream(options.seed, num_examples, window),
                        ShiftSource(options.seed, shift), shift > 0);
}

ReplicaBatches::ReplicaBatches(ExampleStore store, Slice slice, IndexStream stream,
                               ShiftSource shifts, bool shifted)
    : store_(std::move(store)),
      slice_(slice),
      stream_(std::move(stream)),
      shifts_(shifts),
      shifted_(shifted),
      examples_(slice.batch_per_tower()) {}

std::vector<Batch> ReplicaBatches::MakeBatches() const {
  std::vector<Batch> batches;
  for (int64_t tower = 0; tower < slice_.towers(); ++tower) {
    batches.push_back(store_.MakeBatch(slice_.batch_per_tower()));
  }
  return batches;
}

void ReplicaBatches::Fill(int64_t step, std::vector<Batch>* batches) {
  for (int64_t tower = 0; tower < slice_.towers(); ++tower) {
    const int64_t begin = slice_.Begin(step, tower);
    stream_.Read(begin, absl::MakeSpan(examples_));
    Batch* batch = &(*batches)[tower];
    for (int64_t row = 0; row < slice_.batch_per_tower(); ++row) {
      if (shifted_) {
        store_.CopyShiftedTo(examples_[row], shifts_.At(begin + row), row, batch);
      } else {
        store_.CopyTo(examples_[row], row, batch);
      }
    }
  }
}

}  // namespace lockstep::worker
