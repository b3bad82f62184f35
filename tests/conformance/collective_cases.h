// The cases of the reductions' suite for every algorithm, and the expected answers by formulas of
// their own.
#pragma once

#include <vector>

#include "common/tensor/tensor.h"
#include "worker/collective/make_schedule.h"

namespace lockstep::conformance {

// Every algorithm over 1 to 9 participants, however they divide into workers and towers, with every
// number of shards that it takes and every turn that makes a difference. `length` is 0.
std::vector<worker::ScheduleSpec> CollectiveCases();

// 0, 1, primes, and around the edges of segments.
std::vector<size_t> LengthsFor(const worker::ScheduleSpec& spec);

// By rank; drawn from a seed.
std::vector<Tensor> DrawVectors(DType dtype, int participants, size_t length, uint64_t seed);

// The sum of float32 vectors as docs/collectives.md orders the additions of the algorithm.
std::vector<float> ExpectedSum(const worker::ScheduleSpec& spec,
                               const std::vector<Tensor>& vectors);

// All that participants send, by the formulas of docs/collectives.md.
worker::Traffic ExpectedTraffic(const worker::ScheduleSpec& spec);

std::string Describe(const worker::ScheduleSpec& spec);

}  // namespace lockstep::conformance
