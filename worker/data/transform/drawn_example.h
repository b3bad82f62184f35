// One example of a batch.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::worker {

struct DrawnExample {
  int64_t number = 0;  // among those that the worker reads, from 0, in the order of the files
  int64_t draw = 0;    // what its random changes are a function of, beside the seed
  bool operator==(const DrawnExample&) const = default;
};

// What streams are made of: one example, or a batch.
using Element = std::vector<DrawnExample>;

}  // namespace lockstep::worker
