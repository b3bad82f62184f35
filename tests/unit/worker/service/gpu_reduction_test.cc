// What is chosen for several GPUs, by the links that the driver tells of.
#include "worker/service/gpu_reduction.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/cuda/fake_nccl.h"
#include "tests/support/log_lines.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/cuda/nccl_library.h"
#include "worker/service/worker_devices.h"

namespace lockstep::worker {
namespace {

using Kind = CrossTowerOpsKind;

constexpr int kDgx1Gpus = 8;

class Gpus {
 public:
  explicit Gpus(int count) {
    for (int i = 0; i < count; ++i) gpus_.push_back(test::MakeFakeGpu(/*seed=*/1, i));
  }
  const cuda::Driver& driver() const { return gpus_.front()->driver(); }
  TowerDevices devices() const {
    std::vector<Device*> all;
    for (const auto& gpu : gpus_) all.push_back(gpu.get());
    return TowerDevices(std::move(all));
  }

 private:
  std::vector<std::shared_ptr<cuda::CudaDevice>> gpus_;
};

// Each GPU is linked to those of its four and to its counterpart: two squares of NVLink.
void LinkAsDgx1() {
  test::FakeDriver& fake = test::FakeDriver::Current();
  for (int i = 0; i < kDgx1Gpus; ++i) {
    for (int j = 0; j < kDgx1Gpus; ++j) {
      if (i / 4 != j / 4 && i % 4 != j % 4) fake.CutLink(i, j);
    }
  }
}

TEST_CASE("eight GPUs take hierarchical copy where the driver links them as those of a DGX-1") {
  const Gpus gpus(kDgx1Gpus);
  CHECK(ChooseTheBestFor(gpus.devices()).kind == Kind::kNccl);
  LinkAsDgx1();
  const CrossTowerOpsChoice choice = ChooseTheBestFor(gpus.devices());
  CHECK(choice.kind == Kind::kHierarchicalCopy);
  CHECK(choice.num_packs == kDgx1Gpus);
  CHECK(choice.warnings.empty());
  test::FakeDriver::Current().CutLink(5, 1);
  CHECK(ChooseTheBestFor(gpus.devices()).kind == Kind::kNccl);
}

TEST_CASE("other GPUs take nccl, with links and without; a link that is not told of is reported") {
  const Gpus gpus(2);
  CHECK(ChooseTheBestFor(gpus.devices()).kind == Kind::kNccl);
  test::FakeDriver::Current().FailCall(0, test::kErrorLaunchFailed);
  const CrossTowerOpsChoice unknown = ChooseTheBestFor(gpus.devices());
  CHECK(unknown.kind == Kind::kNccl);
  REQUIRE(unknown.warnings.size() == 1);
  CHECK_THAT(unknown.warnings[0],
             Catch::StartsWith("links of cuda:0 to cuda:1 are not known: cuDeviceCanAccessPeer: "));
  test::FakeDriver::Current().CutLinks();
  CHECK(ChooseTheBestFor(gpus.devices()).kind == Kind::kNccl);
}

TEST_CASE("a CPU takes the reduction to one device") {
  CpuDevice cpu(1);
  CHECK(ChooseTheBestFor(&cpu).kind == Kind::kReductionToOneDevice);
}

constexpr char kNotDgx1[] = "all devices are GPUs, and not linked as those of a DGX-1";

JobDef JobWith(const std::string& fields) {
  JobDef job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(fields, &job));
  return job;
}

// Two GPUs of a backend, and an NCCL or the reason why there is none.
class GpusWithNccl {
 public:
  explicit GpusWithNccl(absl::StatusOr<const cuda::NcclLibrary*> nccl)
      : nccl_(std::move(nccl)), last_(test::MakeFakeGpu(/*seed=*/1, /*ordinal=*/1)) {
    cuda::SetNcclForTesting(&nccl_);
    backend_ = *Backend::Open({.kind = DeviceChoice::Kind::kCuda}, &last_->driver());
  }
  ~GpusWithNccl() { cuda::SetNcclForTesting(nullptr); }

  // By WorkerDevices, with the job's towers.
  WorkerDevices Make(const std::string& job) const {
    return *WorkerDevices::Create(backend_, JobWith(job), /*threads=*/1);
  }

 private:
  const absl::StatusOr<const cuda::NcclLibrary*> nccl_;
  const std::shared_ptr<cuda::CudaDevice> last_;
  Backend backend_;
};

TEST_CASE("towers on several GPUs are reduced by NCCL where there is one") {
  test::FakeNccl nccl;
  const GpusWithNccl gpus(nccl.library());
  {
    const WorkerDevices chosen = gpus.Make("towers: 2");
    CHECK(chosen.reduction() == absl::StrCat("NCCL 2.99.5: ", kNotDgx1));
    CHECK(chosen.towers().communicator() != nullptr);
    CHECK(nccl.live() == 2);
  }
  CHECK(nccl.live() == 0);
  CHECK(gpus.Make("towers: 3 strategy { parameter_server { cross_tower_ops { all_reduce {} } } }")
            .reduction() == "NCCL 2.99.5: the job says all_reduce");
  const WorkerDevices copies = gpus.Make(
      "towers: 2 strategy { parameter_server { cross_tower_ops { reduction_to_one_device {} } } }");
  CHECK(copies.reduction() == "copies to cuda:0: the job says reduction_to_one_device");
  CHECK(copies.towers().communicator() == nullptr);
}

TEST_CASE("on one GPU, on the host and by towers that push alone nothing is reduced over GPUs") {
  test::FakeNccl nccl;
  const GpusWithNccl gpus(nccl.library());
  for (const char* const job : {"towers: 1", "towers: 2 strategy { replicated {} }",
                                "towers: 2 sync { asynchronous {} }"}) {
    INFO(job);
    const WorkerDevices devices = gpus.Make(job);
    CHECK(devices.reduction().empty());
    CHECK(devices.towers().communicator() == nullptr);
  }
  CHECK(nccl.calls() == 0);
  CHECK(WorkerDevices::Create(Backend(), JobWith("towers: 2"), 1)->reduction().empty());
}

TEST_CASE("a worker with one device says that the job's cross_tower_ops have no effect there") {
  const JobDef job = JobWith("strategy { parameter_server { cross_tower_ops { all_reduce {} } } }");
  const Gpus gpus(2);
  const Backend backend = *Backend::Open({.kind = DeviceChoice::Kind::kCuda}, &gpus.driver());
  CpuDevice cpu(1);
  for (Device* const device : {gpus.devices().first(), static_cast<Device*>(&cpu)}) {
    const TowerDevices one(device);
    const std::vector<std::string> lines =
        test::LogLines([&] { CHECK(MakeGpuReduction(job, one, backend).description.empty()); });
    REQUIRE(lines.size() == 1);
    CHECK_THAT(lines[0], Catch::EndsWith(absl::StrCat(
                             "strategy.parameter_server.cross_tower_ops has no effect: this "
                             "worker computes on ",
                             device->name(), " alone")));
    CHECK(test::LogLines([&] { MakeGpuReduction({}, one, backend); }).empty());
  }
}

TEST_CASE("without NCCL, and where it refuses, gradients are copied to the first GPU") {
  const std::string expected =
      absl::StrCat("copies to cuda:0: nccl cannot be used (", kNotDgx1, ")");
  {
    const GpusWithNccl gpus(absl::FailedPreconditionError("no NCCL. Remedy: install it"));
    const WorkerDevices devices = gpus.Make("towers: 2");
    CHECK(devices.reduction() == expected);
    CHECK(devices.towers().communicator() == nullptr);
  }
  test::FakeNccl nccl;
  const GpusWithNccl gpus(nccl.library());
  nccl.FailCall(0);
  CHECK(gpus.Make("towers: 2").reduction() == expected);
  CHECK(nccl.failed_call() == "ncclCommInitAll");
  nccl.FailCall(4);
  CHECK(gpus.Make("towers: 2").reduction() == expected);
  CHECK(nccl.failed_call() == "ncclGroupEnd");
  CHECK(nccl.live() == 0);
}

TEST_CASE(
    "GPUs that are linked as those of a DGX-1, and jobs that say so, take hierarchical copy") {
  const Gpus gpus(kDgx1Gpus);
  LinkAsDgx1();
  const Backend backend = *Backend::Open({.kind = DeviceChoice::Kind::kCuda}, &gpus.driver());
  const GpuReduction linked = MakeGpuReduction({}, gpus.devices(), backend);
  CHECK(linked.communicator != nullptr);
  CHECK(linked.description == "hierarchical_copy: the GPUs are linked as those of a DGX-1");
  // The fifth, which adds the second half, copies from those behind it.
  for (int behind = 5; behind < kDgx1Gpus; ++behind) {
    CHECK(test::FakeDriver::Current().ReadsDirectly(4, behind));
  }
  CHECK_FALSE(test::FakeDriver::Current().ReadsDirectly(4, 0));
  const Gpus two(2);
  const JobDef job = JobWith(
      "strategy { parameter_server { cross_tower_ops { all_reduce { all_reduce_alg: "
      "'hierarchical_copy' } } } }");
  CHECK(MakeGpuReduction(job, two.devices(), backend).description ==
        "hierarchical_copy: the job says all_reduce");
}

}  // namespace
}  // namespace lockstep::worker
