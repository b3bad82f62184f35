#include "worker/data/example_stream.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/data/data_options.h"

namespace lockstep::worker {
absl::StatusOr<ExampleStream> ExampleStream::Open(const DataDef& data, const ExampleSpec& spec,
                                                  uint64_t seed) {
  LOCKSTEP_ASSIGN_OR_RETURN(ExampleStore store, ExampleStore::Open(data, Split::kTrain, spec));
  const int64_t num_examples = store.num_examples();
  LOCKSTEP_ASSIGN_OR_RETURN(const ShuffleWindow window, WindowOf(data, num_examples));
  const int64_t shift = data.augmentation().shift();
  LOCKSTEP_RETURN_IF_ERROR(CheckShift(shift, store));
  return ExampleStream(std::make_shared<const ExampleStore>(std::move(store)),
                       IndexStream(seed, num_examples, window), ShiftSource(seed, shift),
                       shift > 0);
}

ExampleStream::ExampleStream(std::shared_ptr<const ExampleStore> store, IndexStream indices,
                             ShiftSource shifts, bool shifted)
    : store_(std::move(store)), indices_(std::move(indices)), shifts_(shifts), shifted_(shifted) {}

int64_t ExampleStream::MostRows() const {
  return kMostBatchElements / std::max<int64_t>(input_shape().num_elements(), 1);
}

void ExampleStream::Fill(int64_t first, int64_t rows, Batch* batch) {
  batch->examples.resize(rows);
  indices_.Read(first, absl::MakeSpan(batch->examples));
  for (int64_t row = 0; row < rows; ++row) {
    if (shifted_) {
      store_->CopyShiftedTo(batch->examples[row], shifts_.At(first + row), row, batch);
    } else {
      store_->CopyTo(batch->examples[row], row, batch);
    }
  }
}

}  // namespace lockstep::worker
