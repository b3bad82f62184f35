// Evaluation of leases, with variables from parameter servers in this process.
#include "worker/evaluate/evaluator.h"

#include <atomic>
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "chief/plan/place.h"
#include "common/base/exit_code.h"
#include "common/job/example_spec.h"
#include "tests/support/deferred_device.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thread_timer.h"
#include "tests/unit/worker/evaluate/fakes.h"
#include "tests/unit/worker/support/counting_ps.h"
#include "tests/unit/worker/support/fetched_variables.h"
#include "tests/unit/worker/support/ps_cluster.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/evaluate/evaluate_range.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kTableRows = 500;
constexpr int64_t kDim = 4;
constexpr int64_t kBatch = 8;

constexpr char kModel[] = R"(
  input_shape: [2]
  layers { name: "table" embedding { rows: 500 dim: 4 } }
  layers { name: "scores" dense { units: 2 } }
  layers { name: "loss" softmax_cross_entropy {} })";

// The model, placed in parts on two ps, and 40 examples: i reads the rows i and 499 - i.
struct Fixture {
  Fixture()
      : graph(test::MakeGraph(kModel)),
        placement(*chief::Place(graph, 2, 1000, {})),
        layout(*VariableLayout::Create(placement)),
        cluster({.placement = placement, .optimizer = Sgd(), .seed = 4}),
        shards(cluster.data()) {
    std::string csv;
    for (int i = 0; i < 40; ++i) absl::StrAppend(&csv, i, ",", 499 - i, ",", i % 2, "\n");
    DataDef data;
    data.set_scale(1);
    data.mutable_csv()->add_train(folder.Write("train.csv", csv));
    data.mutable_csv()->set_test(folder.Write("test.csv", csv));
    data.mutable_csv()->set_label_column("2");
    data.mutable_csv()->set_no_header(true);
    auto opened = TestSet::Open(data, ExampleSpecOf(graph));
    REQUIRE(opened.ok());
    test_set = *std::move(opened);
  }
  static OptimizerDef Sgd() {
    OptimizerDef optimizer;
    optimizer.mutable_sgd();
    return optimizer;
  }
  EvaluatorOptions Options() {
    return {
        .identity = cluster.Identity(0), .batch = kBatch, .device = &device, .ops = &cpu::Ops()};
  }
  absl::StatusOr<std::unique_ptr<Evaluator>> Make(std::function<void()> on_result) {
    return Evaluator::Create(Options(), &graph, &layout, shards.pointers(), &timer, test_set.get(),
                             std::move(on_result));
  }
  // The examples [begin, end) with every variable whole.
  Tower::Evaluation Expected(int64_t begin, int64_t end) {
    std::vector<int64_t> all(kTableRows);
    for (int64_t row = 0; row < kTableRows; ++row) all[row] = row;
    std::vector<std::span<const int64_t>> rows(layout.variables().size());
    rows[0] = all;
    test::FetchedVariables variables(layout, cluster.transports(), cluster.Identity(0),
                                     /*asynchronous=*/false);
    REQUIRE(variables.Fetch(GlobalStep(0), rows).ok());
    const auto tower =
        Tower::Create(graph, &device, cpu::Ops(),
                      {.batches = BatchSizes(end - begin, kBatch), .training = false});
    const VariableValues whole{variables->views()};
    return *EvaluateRange(tower->get(), *test_set, whole, begin, end, kBatch);
  }

  CpuDevice device{1};
  const ModelGraph graph;
  const Placement placement;
  const VariableLayout layout;
  test::PsCluster cluster;
  test::CountingPs shards;
  ThreadTimer timer;
  lockstep::test::TemporaryFolder folder;
  std::unique_ptr<TestSet> test_set;
};

google::protobuf::RepeatedPtrField<EvaluationLease> LeaseOf(uint64_t id, int64_t version,
                                                            int64_t begin, int64_t end) {
  google::protobuf::RepeatedPtrField<EvaluationLease> leases;
  EvaluationLease* lease = leases.Add();
  lease->set_id(id);
  lease->set_version(version);
  lease->set_begin(begin);
  lease->set_end(end);
  return leases;
}

TEST_CASE("a range is evaluated with the rows that its examples read, and gives what all would") {
  Fixture f;
  absl::Notification done;
  const auto evaluator = f.Make([&] { done.Notify(); });
  REQUIRE(evaluator.ok());
  (*evaluator)->SetLeases(LeaseOf(7, 0, 3, 25));
  done.WaitForNotification();
  const std::vector<EvaluationResult> results = (*evaluator)->Results();
  REQUIRE(results.size() == 1);
  const Tower::Evaluation expected = f.Expected(3, 25);
  CHECK(results[0].lease() == 7);
  CHECK(results[0].examples() == 22);
  CHECK(results[0].correct() == expected.correct);
  CHECK(results[0].loss_sum() == expected.loss_sum);
  // Two rows for each example, and what is dense once.
  const int64_t dense = (2 * kDim * 2 + 2 + 1) * 4;
  CHECK(f.shards.pulled_bytes() == 22 * 2 * kDim * 4 + dense);
}

// Has memory for nothing.
class FullDevice final : public CpuDevice {
 public:
  FullDevice() : CpuDevice(1) {}
  absl::StatusOr<DeviceBuffer> Allocate(size_t) override {
    return WithExitCode(absl::ResourceExhaustedError("no memory"), ExitCode::kBadConfiguration);
  }
};

TEST_CASE("a model that the device has no memory for is refused before there is a lease") {
  Fixture f;
  FullDevice full;
  EvaluatorOptions options = f.Options();
  options.device = &full;
  const absl::Status refused =
      Evaluator::Create(options, &f.graph, &f.layout, f.shards.pointers(), &f.timer,
                        f.test_set.get(), [] { FAIL("a result"); })
          .status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()), Catch::StartsWith("the model for evaluations: "));
  CHECK(f.shards.pulls() == 0);
}

// Counts what it has pinned.
class PinningDevice final : public lockstep::test::DeferredDevice {
 public:
  PinningDevice() : DeferredDevice(/*threads=*/1, /*seed=*/1) {}
  absl::StatusOr<DeviceBuffer> AllocatePinned(size_t bytes) override {
    ++pinned;
    return DeferredDevice::AllocatePinned(bytes);
  }
  std::atomic<int> pinned = 0;
};

TEST_CASE("the host's memory for a device's variables is pinned before there is a lease") {
  Fixture f;
  PinningDevice device;
  EvaluatorOptions options = f.Options();
  options.device = &device;
  absl::Notification done;
  const auto evaluator = *Evaluator::Create(options, &f.graph, &f.layout, f.shards.pointers(),
                                            &f.timer, f.test_set.get(), [&] { done.Notify(); });
  const int pinned = device.pinned;
  CHECK(f.shards.pulls() == 0);
  evaluator->SetLeases(LeaseOf(7, 0, 0, 40));
  done.WaitForNotification();
  CHECK(evaluator->Results().size() == 1);
  CHECK(device.pinned == pinned);
}

TEST_CASE("a lease that waits for its version lets the evaluator end, without a result") {
  Fixture f;
  absl::Notification done;
  {
    const auto evaluator = f.Make([&] { done.Notify(); });
    REQUIRE(evaluator.ok());
    (*evaluator)->SetLeases(LeaseOf(1, 5, 0, 40));
    while (f.shards.pulls() == 0) std::this_thread::yield();
    for (TensorTransport* shard : f.shards.pointers()) shard->Cancel();
  }
  CHECK_FALSE(done.HasBeenNotified());
}

}  // namespace
}  // namespace lockstep::worker
