// ExampleSource gives the examples that belong to a step of one replica.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "worker/data/transform/drawn_example.h"

namespace lockstep::worker {

// The result of Read depends only on the construction of the source and the step. Not thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Fills one batch per tower, 0 <= step <= last_step(). Steps in ascending order are cheap.
  // Returns false soon after `cancelled` becomes true; the batches may then be partly filled.
  virtual bool Read(int64_t step, const std::atomic<bool>& cancelled,
                    std::vector<Element>* towers) = 0;
  virtual int64_t last_step() const = 0;
};

}  // namespace lockstep::worker
