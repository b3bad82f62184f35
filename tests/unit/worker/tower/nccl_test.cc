// Towers on several GPUs whose gradients NCCL sums, over a driver and an NCCL that the host
// imitates.
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/cuda/fake_nccl.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "tests/unit/worker/tower/orders_of_work.h"
#include "worker/device/cuda/nccl_communicator.h"
#include "worker/device/pinned_tensor.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

using test::FakeDriver;
using test::FakeNccl;

constexpr uint64_t kSeeds = 30;  // for each model and layout

struct Layout {
  int towers = 1;
  int devices = 1;
};
// The last one has two towers on the first GPU.
constexpr Layout kLayouts[] = {{2, 2}, {3, 3}, {3, 2}};

class NcclGpus {
 public:
  explicit NcclGpus(int count) {
    std::vector<cuda::CudaDevice*> all;
    for (int i = 0; i < count; ++i) {
      const auto gpu = test::MakeFakeGpu(/*seed=*/1, i);
      all.push_back(gpu.get());
      gpus_.push_back(gpu);
    }
    if (count > 1) communicator_ = *cuda::NcclCommunicator::Create(nccl_.library(), all);
  }
  TowerDevices towers() const {
    std::vector<Device*> all;
    for (const std::shared_ptr<Device>& gpu : gpus_) all.push_back(gpu.get());
    return TowerDevices(std::move(all), communicator_.get());
  }
  FakeNccl* nccl() { return &nccl_; }
  // Of gradients that are copied as soon as they can be, or once NCCL has summed them.
  TensorMaker maker(bool is_pinned) const {
    return is_pinned ? PinnedTensors(gpus_.front().get()) : TensorMaker(OnHeap);
  }

 private:
  std::vector<std::shared_ptr<Device>> gpus_;
  FakeNccl nccl_;
  std::unique_ptr<Communicator> communicator_;
};

// By as many towers on one GPU.
std::vector<Gradients> OnOneGpu(const ModelGraph& graph, int towers,
                                const ReducerOptions& options) {
  const NcclGpus gpu(1);
  const auto group = *MakeGroup(graph, gpu.towers(), cuda::Ops(), options);
  return TrainVariants(group.get(), graph, towers);
}

TEST_CASE("two GPUs have the bits of two towers on one, three agree, in any order of the work") {
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const auto [towers, devices] : kLayouts) {
      CAPTURE(model, towers, devices);
      const ReducerOptions options = OptionsOf(towers, model);
      const std::vector<Gradients> on_one = OnOneGpu(graph, towers, options);
      NcclGpus gpus(devices);
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), options);
      const int64_t before = gpus.nccl()->calls();
      const std::vector<Gradients> wanted = TrainVariants(group.get(), graph, towers);
      CHECK(gpus.nccl()->calls() > before);
      for (int variant = 0; variant < kVariants; ++variant) {
        const auto v = static_cast<size_t>(variant);
        CHECK(LargestDifference(on_one[v], wanted[v]) < 1e-6);
        if (towers == 2) CHECK(AreSame(on_one[v], wanted[v]));
      }
      for (const bool is_pinned : {false, true}) {
        if (is_pinned && model != 0) continue;  // takes long, and models differ before the copies
        CHECK(FirstOtherOrder({group.get(), &graph, towers, FakeDriver::Current().work(),
                               gpus.maker(is_pinned)},
                              wanted, kSeeds) == 0);
      }
    }
  }
}

TEST_CASE("each wait that a step with NCCL leaves out shows") {
  constexpr size_t kKind = 2;  // not a global norm, whose op waits for all events
  for (const size_t model : {size_t{0}, size_t{4}}) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const auto [towers, devices] : {Layout{2, 2}, Layout{3, 2}}) {
      CAPTURE(model, towers, devices);
      NcclGpus gpus(devices);
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(towers, kKind));
      const std::vector<Gradients> wanted = TrainVariants(group.get(), graph, towers);
      for (const bool is_pinned : {false, true}) {
        if (is_pinned && model != 0) continue;  // takes long, and models differ before the copies
        int64_t waits = 0;
        CHECK(NeedlessWaits({group.get(), &graph, towers, FakeDriver::Current().work(),
                             gpus.maker(is_pinned)},
                            wanted, &waits) == std::vector<int64_t>());
        CHECK(waits > 0);
      }
    }
  }
}

// How a step ends of which a call fails.
struct FailedStep {
  absl::Status status;
  int wrong = 0;  // gradients that were announced and are not those of a whole step
};

FailedStep TrainAndFail(TowerGroup* group, const ModelGraph& graph, int towers,
                        const Gradients& wanted) {
  FailedStep step;
  step.status = Train(group, graph, towers, 0, [&](int variable, const Tensor& gradient) {
                  step.wrong += !SameBits(gradient, wanted[static_cast<size_t>(variable)]);
                }).status();
  return step;
}

TEST_CASE("a call of NCCL that fails ends the step, and no wrong gradient is announced") {
  const ModelGraph graph = GraphOf(kDense);
  for (const auto [towers, devices] : kLayouts) {
    Gradients wanted;
    int64_t calls = 1;
    for (int64_t n = 0; n < calls; ++n) {
      CAPTURE(towers, devices, n);
      NcclGpus gpus(devices);
      FakeNccl* const nccl = gpus.nccl();
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(towers, 0));
      if (n == 0) {
        const int64_t before = nccl->calls();
        wanted = *Train(group.get(), graph, towers, 0);
        calls = nccl->calls() - before;
        REQUIRE(calls >= 7 * (devices + 2));  // kDense has seven trained variables
      }
      nccl->FailCall(n);
      const FailedStep step = TrainAndFail(group.get(), graph, towers, wanted);
      CHECK(step.wrong == 0);
      REQUIRE(absl::IsInternal(step.status));
      CHECK(ExitCodeFor(step.status) == ExitCode::kDeviceFailed);
      CHECK_THAT(std::string(step.status.message()),
                 Catch::StartsWith(devices == 2 ? "cuda:0,cuda:1: " : "cuda:0,cuda:1,cuda:2: ") &&
                     Catch::Contains(": " + nccl->failed_call()) &&
                     Catch::EndsWith(": what NCCL says: and more"));
      // It stays, and nothing waits for a rank that does not come.
      CHECK(nccl->aborted() == devices);
      CHECK(nccl->live() == 0);
      CHECK(Train(group.get(), graph, towers, 1).status() == step.status);
    }
  }
}

TEST_CASE("what NCCL has launched on some GPUs alone is aborted before anything waits for it") {
  const ModelGraph graph = GraphOf(kDense);
  for (const int devices : {2, 3}) {
    NcclGpus gpus(devices);
    const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(devices, 0));
    const Gradients wanted = *Train(group.get(), graph, devices, 0);
    gpus.nccl()->FailHalfway();
    const FailedStep step = TrainAndFail(group.get(), graph, devices, wanted);
    CHECK(step.wrong == 0);
    CHECK_THAT(std::string(step.status.message()), Catch::Contains(": ncclGroupEnd: "));
    CHECK(gpus.nccl()->aborted() == devices);
    CHECK(Train(group.get(), graph, devices, 1).status() == step.status);
  }
}

// Without clipping, and with one by a global norm: there the first gradient waits for all others.
constexpr size_t kClippings[] = {0, 3};

TEST_CASE("a GPU that is lost while the others wait for it ends the step") {
  const ModelGraph graph = GraphOf(kDense);
  constexpr int kGpus = 3;
  for (size_t lost = 0; lost < kGpus; ++lost) {
    for (const size_t clipping : kClippings) {
      CAPTURE(lost, clipping);
      NcclGpus gpus(kGpus);
      FakeNccl* const nccl = gpus.nccl();
      const ReducerOptions options = OptionsOf(kGpus, clipping);
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), options);
      const int64_t before = nccl->groups();
      const Gradients wanted = *Train(group.get(), graph, kGpus, 0);
      nccl->LoseRank(lost, nccl->groups() - before - 1);  // in the last of a step
      const FailedStep step = TrainAndFail(group.get(), graph, kGpus, wanted);
      CHECK(step.wrong == 0);
      CHECK_THAT(std::string(step.status.message()),
                 Catch::StartsWith("cuda:" + std::to_string(lost) + ": cu"));
      CHECK(ExitCodeFor(step.status) == ExitCode::kDeviceFailed);
      CHECK(nccl->aborted() == kGpus);
      CHECK(Train(group.get(), graph, kGpus, 1).status() == step.status);
    }
  }
}

TEST_CASE("no copy that blocks waits for a GPU that is lost") {
  const ModelGraph graph = GraphOf(kDense);
  constexpr int kGpus = 3;
  const int64_t is_last = GENERATE(0, 1);  // whether it is lost in the last sum, or in the first
  for (size_t lost = 0; lost < kGpus; ++lost) {
    for (const size_t clipping : kClippings) {
      CAPTURE(lost, clipping, is_last);
      NcclGpus gpus(kGpus);
      FakeDriver::Current().BlockPageableCopies();
      FakeNccl* const nccl = gpus.nccl();
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(kGpus, clipping));
      const int64_t before = nccl->groups();
      const Gradients wanted = *Train(group.get(), graph, kGpus, 0);
      const int64_t sums = nccl->groups() - before;
      nccl->LoseRank(lost, is_last * (sums - 1));
      const FailedStep step = TrainAndFail(group.get(), graph, kGpus, wanted);
      CHECK_FALSE(FakeDriver::Current().has_hung());
      CHECK(step.wrong == 0);
      CHECK(ExitCodeFor(step.status) == ExitCode::kDeviceFailed);
    }
  }
}

TEST_CASE("an error that NCCL meets after it was called ends the step") {
  const ModelGraph graph = GraphOf(kDense);
  for (const size_t clipping : kClippings) {
    NcclGpus gpus(2);
    const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(2, clipping));
    const int64_t before = gpus.nccl()->groups();
    const Gradients wanted = *Train(group.get(), graph, 2, 0);
    gpus.nccl()->FailAsynchronously(gpus.nccl()->groups() - before - 1);  // the last of a step
    const FailedStep step = TrainAndFail(group.get(), graph, 2, wanted);
    CHECK(step.wrong == 0);
    CHECK(step.status.message() == "cuda:0,cuda:1: ncclReduce: what NCCL says: and more");
    CHECK(ExitCodeFor(step.status) == ExitCode::kDeviceFailed);
    CHECK(gpus.nccl()->aborted() == 2);
  }
}

TEST_CASE("a call of the driver that fails with NCCL ends the step with that error") {
  const ModelGraph graph = GraphOf(kDense);
  constexpr int kTowers = 2;
  Gradients wanted;
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    NcclGpus gpus(kTowers);
    FakeDriver& fake = FakeDriver::Current();
    const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(kTowers, 0));
    if (n == 0) {
      const int64_t before = fake.calls();
      wanted = *Train(group.get(), graph, kTowers, 0);
      calls = fake.calls() - before;
      REQUIRE(calls > 100);
    }
    fake.FailCall(n, test::kErrorLaunchFailed);
    const FailedStep step = TrainAndFail(group.get(), graph, kTowers, wanted);
    CHECK(step.wrong == 0);
    REQUIRE(absl::IsInternal(step.status));
    CHECK(ExitCodeFor(step.status) == ExitCode::kDeviceFailed);
    CHECK_THAT(std::string(step.status.message()), Catch::Contains(": " + fake.failed_call()));
    CHECK(Train(group.get(), graph, kTowers, 1).status() == step.status);
  }
}

TEST_CASE("an evaluation beside training makes no call of CUDA between NCCL's launches") {
  for (const char* const model : {kDense, kLeNet}) {
    const ModelGraph graph = GraphOf(model);
    NcclGpus gpus(2);
    FakeDriver& fake = FakeDriver::Current();
    Device* const first = gpus.towers().first();
    auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(2, 0));
    // Loads and unloads code, takes and frees memory, makes and ends objects of libraries.
    std::atomic<int> failed = 0;
    std::thread evaluation([&] {
      for (int round = 0; round < 3; ++round) {
        const auto tower =
            *Tower::Create(graph, first, cuda::Ops(), {.batches = {4}, .training = false});
        const Operands operands(graph);
        failed += !tower->Evaluate(BatchOf(graph, 4, 0), {operands.variable_views}).ok();
      }
    });
    for (int step = 0; step < 3; ++step) REQUIRE(Train(group.get(), graph, 2, 0).ok());
    evaluation.join();
    CHECK(failed == 0);
    group.reset();
    CHECK(gpus.nccl()->groups() > 0);
    CHECK(gpus.nccl()->launches_alone());
    CHECK(fake.calls_without_lock() ==
          std::set<std::string>{"cuEventSynchronize", "cuStreamSynchronize"});
  }
}

TEST_CASE("what NCCL sums needs no memory for copies on the first GPU") {
  const ModelGraph graph = GraphOf(kDense);
  NcclGpus gpus(2);
  const auto memory_of = [&](const TowerDevices& devices) {
    const auto group = *MakeGroup(graph, devices, cuda::Ops(), OptionsOf(2, 0));
    return devices.first()->use().memory;
  };
  const uint64_t with_copies = memory_of(TowerDevices(gpus.towers().all()));
  CHECK(memory_of(gpus.towers()) + 4 * sizeof(float) * graph.variables().size() < with_copies);
}

}  // namespace
}  // namespace lockstep::worker
