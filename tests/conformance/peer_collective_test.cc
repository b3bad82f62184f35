// The suite of collective_test.cc over worker processes: servers on loopback, messages that carry
// elements and messages that name them in shared memory. One reduction has a vector of every
// length.
#include <catch2/catch.hpp>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "tests/conformance/collective_cases.h"
#include "tests/support/peer_workers.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::conformance {
namespace {

using worker::BatchPlan;
using worker::GroupReduction;
using worker::PeerGroupReducer;
using worker::Schedule;
using worker::ScheduleSpec;
using worker::TensorSpec;
using worker::Traffic;
using Views = std::vector<std::vector<TensorView>>;  // by tower and tensor

constexpr int kMostWorkers = 9;
// Beyond it a group costs so many connections that not every number of shards is worth one.
constexpr int kFewWorkers = 5;

// One schedule for each length, all of the same turn.
GroupReduction ReductionOf(ScheduleSpec spec, const std::vector<size_t>& lengths, DType dtype,
                           bool average) {
  std::vector<TensorSpec> tensors;
  std::vector<Schedule> schedules;
  for (const size_t length : lengths) {
    spec.length = length;
    tensors.push_back(
        {absl::StrCat("t", tensors.size()), dtype, Shape({static_cast<int64_t>(length)})});
    schedules.push_back(worker::MakeSchedule(spec).value());
  }
  const std::vector<ReductionAlgorithm> algorithms(lengths.size(), spec.algorithm);
  BatchPlan plan{worker::PackingPlan::Unpacked(tensors), schedules, algorithms};
  return {spec.topology, tensors, plan, average};
}

// Whether the case is one that workers on a network may answer otherwise than threads of a process,
// for which the same suite has every number of shards and every turn.
bool IsWorthAGroup(const ScheduleSpec& spec) {
  const int workers = spec.topology.workers;
  if (workers < 2 || workers > kMostWorkers) return false;
  if (workers <= kFewWorkers) return spec.index <= 1;
  const bool is_edge = spec.shards <= 2 || spec.shards == spec.topology.num_participants();
  return spec.index == 0 && is_edge;
}

class Run {
 public:
  Run(test::PeerWorkers* workers, uint64_t view, const GroupReduction& reduction,
      bool shared_memory, size_t message_bytes)
      : towers_(reduction.topology.towers) {
    const int members = reduction.topology.workers;
    for (int w = 0; w < members; ++w) {
      auto options = workers->OptionsFor(workers->GroupOf(members, view, w), reduction);
      options.shared_memory = shared_memory;
      options.message_bytes = message_bytes;
      auto reducer = PeerGroupReducer::Create(options, workers->service(w));
      if (!reducer.ok()) FAIL(reducer.status());
      reducers_.push_back(*std::move(reducer));
    }
  }

  // vectors[i][rank]: of tensor i. All workers begin in turn, while earlier ones already send.
  void Reduce(int64_t step, const std::vector<std::vector<Tensor>>& vectors) {
    absl::BlockingCounter counter(static_cast<int>(reducers_.size()));
    std::vector<absl::Status> outcomes(reducers_.size());
    for (size_t w = 0; w < reducers_.size(); ++w) {
      Views views(towers_);
      for (int tower = 0; tower < towers_; ++tower) {
        for (const std::vector<Tensor>& by_rank : vectors) {
          views[tower].push_back(by_rank[w * towers_ + tower].view());
        }
      }
      reducers_[w]->Reduce(step, views, [&, w](absl::Status status) {
        outcomes[w] = std::move(status);
        counter.DecrementCount();
      });
    }
    counter.Wait();
    for (const absl::Status& outcome : outcomes) {
      if (!outcome.ok()) FAIL(outcome);
    }
  }

  TensorView Result(int rank, int i) const {
    return reducers_[rank / towers_]->tensor(rank % towers_, i);
  }

  worker::GroupTraffic traffic() const {
    worker::GroupTraffic all;
    for (const auto& reducer : reducers_) {
      const worker::GroupTraffic own = reducer->traffic();
      all.within.messages += own.within.messages;
      all.within.elements += own.within.elements;
      all.across.messages += own.across.messages;
      all.across.elements += own.across.elements;
    }
    return all;
  }

 private:
  const int towers_;
  std::vector<std::unique_ptr<PeerGroupReducer>> reducers_;
};

void RequireBits(const TensorView& got, const void* expected) {
  if (got.num_bytes() > 0 && std::memcmp(got.data, expected, got.num_bytes()) != 0) {
    FAIL("a tower has other bits");
  }
}

TEST_CASE("workers get the sum in the documented order, with the documented messages") {
  const bool shared_memory = GENERATE(false, true);
  test::PeerWorkers workers(kMostWorkers);
  uint64_t view = 0;
  for (ScheduleSpec spec : CollectiveCases()) {
    if (!IsWorthAGroup(spec)) continue;
    ++view;
    const int n = spec.topology.num_participants();
    const std::vector<size_t> lengths = LengthsFor(spec);
    const bool average = view % 2 == 0;
    INFO(Describe(spec) << (average ? ", mean" : ", sum"));
    std::vector<std::vector<Tensor>> vectors;
    Traffic expected;
    for (const size_t length : lengths) {
      vectors.push_back(DrawVectors(DType::kFloat32, n, length, view + length));
      spec.length = length;
      expected.messages += ExpectedTraffic(spec).messages;
      expected.elements += ExpectedTraffic(spec).elements;
    }
    Run run(&workers, view, ReductionOf(spec, lengths, DType::kFloat32, average), shared_memory, 0);
    run.Reduce(5, vectors);
    const worker::GroupTraffic traffic = run.traffic();
    REQUIRE(traffic.within.messages + traffic.across.messages == expected.messages);
    REQUIRE(traffic.within.elements + traffic.across.elements == expected.elements);
    for (size_t i = 0; i < lengths.size(); ++i) {
      std::vector<float> sum = ExpectedSum(spec, vectors[i]);
      for (float& element : sum) element = element / static_cast<float>(average ? n : 1);
      for (int rank = 0; rank < n; ++rank) RequireBits(run.Result(rank, i), sum.data());
    }
  }
  REQUIRE(view > 50);
}

TEST_CASE("a gathered tensor has every tower's share, in the order of their ranks, everywhere") {
  const bool shared_memory = GENERATE(false, true);
  test::PeerWorkers workers(3);
  uint64_t view = 0;
  for (const Topology& topology : {Topology{2, 1}, Topology{3, 1}, Topology{2, 3}}) {
    const int n = topology.num_participants();
    // The last ones are more than one message.
    GroupReduction reduction =
        ReductionOf({ReductionAlgorithm::kXring, topology}, {5, 300}, DType::kFloat32, true);
    for (const int64_t share : {1, 64, 5000}) {
      reduction.tensors.push_back(
          {.name = absl::StrCat("g", share), .shape = Shape({n * share}), .shares = n});
    }
    REQUIRE(worker::AddGathers(topology, reduction.tensors, 2, &reduction.plan).ok());
    for (const worker::Schedule& schedule : absl::MakeSpan(reduction.plan.schedules).subspan(2)) {
      const ScheduleSpec spec{.algorithm = ReductionAlgorithm::kGather,
                              .topology = topology,
                              .length = schedule.length()};
      CHECK(schedule.Total() == ExpectedTraffic(spec));
    }
    Run run(&workers, ++view, reduction, shared_memory, 8192);
    for (int64_t step = 0; step < 3; ++step) {
      std::vector<std::vector<Tensor>> vectors;
      for (const size_t length : {5, 300, 1, 64, 5000}) {
        vectors.push_back(DrawVectors(DType::kFloat32, n, length, view * 10 + step));
      }
      run.Reduce(step, vectors);
      for (size_t i = 2; i < vectors.size(); ++i) {
        std::vector<float> expected;
        for (const Tensor& share : vectors[i]) {
          const std::span<const float> elements = share.view().as<float>();
          expected.insert(expected.end(), elements.begin(), elements.end());
        }
        for (int rank = 0; rank < n; ++rank) RequireBits(run.Result(rank, i), expected.data());
      }
    }
  }
}

TEST_CASE("messages cut through, and many steps, give the bits of one process") {
  const bool shared_memory = GENERATE(false, true);
  test::PeerWorkers workers(3);
  uint64_t view = 0;
  const std::vector<size_t> lengths = {100'003, 1, 4096};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat64}) {
    for (const ReductionAlgorithm algorithm :
         {ReductionAlgorithm::kXring, ReductionAlgorithm::kRechd, ReductionAlgorithm::kPscpu,
          ReductionAlgorithm::kPscpuPscpu}) {
      const ScheduleSpec spec{algorithm, {3, 2}, 2};
      INFO(Describe(spec));
      const GroupReduction reduction = ReductionOf(spec, lengths, dtype, true);
      Run run(&workers, ++view, reduction, shared_memory, 8192);
      for (int64_t step = 0; step < 3; ++step) {
        std::vector<std::vector<Tensor>> vectors;
        for (const size_t length : lengths) {
          vectors.push_back(DrawVectors(dtype, 6, length, view * 10 + step));
        }
        run.Reduce(step, vectors);
        for (size_t i = 0; i < lengths.size(); ++i) {
          std::vector<MutableTensorView> views;
          for (Tensor& vector : vectors[i]) views.push_back(vector.view());
          RunInMemory(reduction.plan.schedules[i], views, 6);
          for (int rank = 0; rank < 6; ++rank) RequireBits(run.Result(rank, i), views[rank].data);
        }
      }
      // 100,003 elements are more than one message between any two.
      REQUIRE(run.traffic().across.messages >
              3 * 3 * Schedule(reduction.plan.schedules[0]).SentBy(0).messages);
    }
  }
}

TEST_CASE("a worker that gathers two shards of a long vector from one other gets both") {
  test::PeerWorkers workers(4);
  // Of 3 shards over 4 workers the third wraps: workers 0 and 1 have two of an index each.
  const ScheduleSpec spec{ReductionAlgorithm::kPscpu, {4, 1}, 3};
  const GroupReduction reduction = ReductionOf(spec, {100'003}, DType::kFloat32, true);
  Run run(&workers, 1, reduction, /*shared_memory=*/false, 8192);
  std::vector<std::vector<Tensor>> vectors;
  vectors.push_back(DrawVectors(DType::kFloat32, 4, 100'003, 1));
  run.Reduce(0, vectors);
  std::vector<MutableTensorView> views;
  for (Tensor& vector : vectors[0]) views.push_back(vector.view());
  RunInMemory(reduction.plan.schedules[0], views, 4);
  for (int rank = 0; rank < 4; ++rank) RequireBits(run.Result(rank, 0), views[rank].data);
  // Each shard is more messages than may be unanswered.
  CHECK(run.traffic().across.messages > 5 * reduction.plan.schedules[0].Total().messages);
}

}  // namespace
}  // namespace lockstep::conformance
