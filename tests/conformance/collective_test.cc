// Every algorithm, over 1 to 9 participants, by every way of carrying out its schedule: the same
// bits everywhere, the additions, messages and bytes that docs/collectives.md states.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "tests/conformance/collective_cases.h"
#include "tests/support/collective_runs.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::conformance {
namespace {

using test::CollectiveRun;
using test::RunInSeededOrder;
using test::RunInThreads;
using worker::MakeSchedule;
using worker::RunInMemory;
using worker::Schedule;
using worker::ScheduleSpec;
using worker::Traffic;

std::vector<Tensor> Clone(const std::vector<Tensor>& vectors) {
  std::vector<Tensor> clones;
  for (const Tensor& vector : vectors) clones.push_back(vector.Clone());
  return clones;
}

std::vector<MutableTensorView> Views(std::vector<Tensor>* vectors) {
  std::vector<MutableTensorView> views;
  for (Tensor& vector : *vectors) views.push_back(vector.view());
  return views;
}

bool AreEqual(const void* a, const void* b, size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

void RequireAllAre(const std::vector<Tensor>& vectors, const void* expected, size_t bytes) {
  for (const Tensor& vector : vectors) {
    REQUIRE(vector.num_bytes() == bytes);
    if (!AreEqual(vector.data(), expected, bytes)) FAIL("a participant has other bits");
  }
}

Schedule RequireSchedule(const ScheduleSpec& spec) {
  auto schedule = MakeSchedule(spec);
  if (!schedule.ok()) FAIL(Describe(spec) << ": " << schedule.status());
  return *std::move(schedule);
}

template <typename Check>
void ForEachCase(Check check) {
  for (ScheduleSpec spec : CollectiveCases()) {
    for (const size_t length : LengthsFor(spec)) {
      spec.length = length;
      check(spec);
    }
  }
}

TEST_CASE("all participants get the sum in the documented order of additions") {
  uint64_t seed = 0;
  ForEachCase([&](const ScheduleSpec& spec) {
    INFO(Describe(spec));
    const Schedule schedule = RequireSchedule(spec);
    const int n = spec.topology.num_participants();
    std::vector<Tensor> vectors = DrawVectors(DType::kFloat32, n, spec.length, ++seed);
    std::vector<float> expected = ExpectedSum(spec, vectors);
    const int divisor = seed % 2 == 0 ? 1 : n;
    for (float& element : expected) element = element / static_cast<float>(divisor);
    RunInMemory(schedule, Views(&vectors), divisor);
    RequireAllAre(vectors, expected.data(), expected.size() * sizeof(float));
  });
}

TEST_CASE("messages and elements are those of the documented formulas") {
  std::set<ReductionAlgorithm> seen;
  ForEachCase([&](const ScheduleSpec& spec) {
    INFO(Describe(spec));
    const Traffic traffic = RequireSchedule(spec).Total();
    const Traffic expected = ExpectedTraffic(spec);
    if (!(traffic == expected)) {
      FAIL("messages " << traffic.messages << ", expected " << expected.messages << "; elements "
                       << traffic.elements << ", expected " << expected.elements);
    }
    seen.insert(spec.algorithm);
  });
  CHECK(seen.size() == 12);
}

TEST_CASE("the order of arrival, parts, and late permission to write change no bit") {
  uint64_t seed = 0;
  for (ScheduleSpec spec : CollectiveCases()) {
    for (const size_t length : {size_t{1}, size_t{97}}) {
      spec.length = length;
      for (const bool copies : {false, true}) {
        ++seed;
        INFO(Describe(spec) << ", seed " << seed);
        const Schedule schedule = RequireSchedule(spec);
        const int n = spec.topology.num_participants();
        const std::vector<Tensor> drawn = DrawVectors(DType::kFloat32, n, length, seed);
        const std::vector<float> expected = ExpectedSum(spec, drawn);
        std::vector<Tensor> vectors = Clone(drawn);
        const CollectiveRun run = RunInSeededOrder(schedule, Views(&vectors), 1, seed, copies);
        REQUIRE(run.has_ended);
        for (int rank = 0; rank < n; ++rank) REQUIRE(run.sent[rank] == schedule.SentBy(rank));
        RequireAllAre(vectors, expected.data(), expected.size() * sizeof(float));
      }
    }
  }
}

TEST_CASE("a thread for each participant gives the same bits") {
  uint64_t seed = 0;
  for (ScheduleSpec spec : CollectiveCases()) {
    if (spec.topology.num_participants() % 3 == 1 || spec.index > 1) continue;
    spec.length = 5003;
    INFO(Describe(spec));
    const Schedule schedule = RequireSchedule(spec);
    const int n = spec.topology.num_participants();
    const std::vector<Tensor> drawn = DrawVectors(DType::kFloat32, n, spec.length, ++seed);
    std::vector<float> expected = ExpectedSum(spec, drawn);
    for (float& element : expected) element = element / static_cast<float>(n);
    std::vector<Tensor> vectors = Clone(drawn);
    const CollectiveRun run = RunInThreads(schedule, Views(&vectors), n);
    for (int rank = 0; rank < n; ++rank) REQUIRE(run.sent[rank] == schedule.SentBy(rank));
    RequireAllAre(vectors, expected.data(), expected.size() * sizeof(float));
  }
}

TEST_CASE("with two participants all algorithms give the same bits") {
  const std::vector<Tensor> drawn = DrawVectors(DType::kFloat32, 2, 1009, 7);
  const ScheduleSpec plain{ReductionAlgorithm::kReductionToOne, {2, 1}};
  std::vector<float> expected = ExpectedSum(plain, drawn);
  for (float& element : expected) element = element / 2;
  int cases = 0;
  for (ScheduleSpec spec : CollectiveCases()) {
    if (spec.topology.num_participants() != 2) continue;
    INFO(Describe(spec));
    spec.length = 1009;
    std::vector<Tensor> vectors = Clone(drawn);
    RunInMemory(RequireSchedule(spec), Views(&vectors), 2);
    RequireAllAre(vectors, expected.data(), expected.size() * sizeof(float));
    ++cases;
  }
  CHECK(cases >= 20);
}

TEST_CASE("every dtype with element math is reduced in its own arithmetic") {
  for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    // More terms than are read in one pass, and more elements than fit in one block.
    const std::vector<Tensor> drawn = DrawVectors(dtype, 7, 20011, 3);
    std::vector<TensorView> terms;
    for (const Tensor& vector : drawn) terms.push_back(vector.view());
    Tensor expected(dtype, Shape({20011}));
    SumAndDivide(terms, 7, {0, 20011}, expected.data());
    for (const ReductionAlgorithm algorithm :
         {ReductionAlgorithm::kPscpu, ReductionAlgorithm::kReductionToOne}) {
      ScheduleSpec spec{algorithm, {7, 1}};
      spec.shards = algorithm == ReductionAlgorithm::kPscpu ? 7 : 1;
      spec.root = algorithm == ReductionAlgorithm::kPscpu ? 0 : 6;
      spec.length = 20011;
      std::vector<Tensor> vectors = Clone(drawn);
      RunInMemory(RequireSchedule(spec), Views(&vectors), 7);
      RequireAllAre(vectors, expected.data(), expected.num_bytes());
    }
  }
}

}  // namespace
}  // namespace lockstep::conformance
