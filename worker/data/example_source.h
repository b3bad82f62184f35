// Which examples belong to a step of one replica.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "worker/data/transform/drawn_example.h"

namespace lockstep::worker {

// What Read gives is a function of how the source was made and of the step alone. Not thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Fills one batch per tower, 0 <= step <= last_step(). Steps in ascending order are cheap. False
  // soon after `cancelled` has become true: the batches are not filled then, or partly.
  virtual bool Read(int64_t step, const std::atomic<bool>& cancelled,
                    std::vector<Element>* towers) = 0;
  virtual int64_t last_step() const = 0;
};

}  // namespace lockstep::worker
