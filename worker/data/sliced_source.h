// The replica's slice of the global batch, out of an endless stream of data epochs.
#pragma once

#include <vector>

#include "worker/data/example_source.h"
#include "worker/data/index_stream.h"
#include "worker/data/slice.h"

namespace lockstep::worker {

class SlicedSource final : public ExampleSource {
 public:
  SlicedSource(const Slice& slice, IndexStream stream);

  // An example's draw is its position in the stream.
  bool Read(int64_t step, const std::atomic<bool>& cancelled,
            std::vector<Element>* towers) override;
  int64_t last_step() const override { return slice_.last_step(); }

 private:
  const Slice slice_;
  IndexStream stream_;
  std::vector<int64_t> numbers_;  // of the batch being read
};

}  // namespace lockstep::worker
