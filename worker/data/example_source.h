// Which examples belong to a step of one replica.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/data/transform/drawn_example.h"

namespace lockstep::worker {

// What Read gives is a function of how the source was made and of the step alone. Not thread-safe.
class ExampleSource {
 public:
  virtual ~ExampleSource() = default;

  // Fills one batch per tower, 0 <= step <= last_step(). Steps in ascending order are cheap.
  virtual void Read(int64_t step, std::vector<Element>* towers) = 0;
  virtual int64_t last_step() const = 0;
};

}  // namespace lockstep::worker
