#include "worker/data/sliced_source.h"

#include <utility>

namespace lockstep::worker {

SlicedSource::SlicedSource(const Slice& slice, IndexStream stream)
    : slice_(slice), stream_(std::move(stream)), numbers_(slice.batch_per_tower()) {}

bool SlicedSource::Read(int64_t step, const std::atomic<bool>&, std::vector<Element>* towers) {
  for (int64_t tower = 0; tower < slice_.towers(); ++tower) {
    const int64_t begin = slice_.Begin(step, tower);
    stream_.Read(begin, absl::MakeSpan(numbers_));
    Element& batch = (*towers)[tower];
    batch.resize(numbers_.size());
    for (size_t row = 0; row < numbers_.size(); ++row) {
      batch[row] = {.number = numbers_[row], .draw = begin + static_cast<int64_t>(row)};
    }
  }
  return true;
}

}  // namespace lockstep::worker
