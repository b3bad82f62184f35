// The examples' jobs on this machine's GPU.
#include <catch2/catch.hpp>
#include <csignal>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/config/text_file.h"
#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"
#include "worker/device/cuda/driver.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);

// The example's job with so many steps and no backup worker, in the cluster's folder. It learns
// slowly: otherwise steps multiply by a thousand the difference that it makes when rounding takes
// an element to the other side of a relu, on two CPUs of different instruction sets, too.
std::string WriteSlowExample(const Cluster& cluster, const std::string& example, int steps) {
  const std::string folder = Binary("deploy/examples/" + example);
  std::string job = ReadTextFile(folder + "/job.textproto").value();
  const auto replace = [&job](const std::string& pattern, const std::string& with) {
    job = std::regex_replace(job, std::regex(pattern), with);
  };
  replace("\\.\\./\\.\\./data", Binary("deploy/data"));
  replace("max_steps: [0-9]+", absl::StrCat("max_steps: ", steps));
  replace("base: [0-9.]+", "base: 0.0002");
  replace("values: \\[[^\\]]*\\]", "values: [0.002, 0.002, 0.002]");
  replace("sync \\{[^}]*\\}", "");
  cluster.folder().Write("model.textproto", ReadTextFile(folder + "/model.textproto").value());
  return cluster.folder().Write("job.textproto", job);
}

// With two workers. `on_gpu`: how many of them compute on the GPU.
std::vector<double> LossesOfExample(const std::string& example, int on_gpu) {
  Cluster cluster(1, 2);
  for (int worker = 0; worker < on_gpu; ++worker) cluster.UseGpu(worker);
  cluster.StartJob(WriteSlowExample(cluster, example, 50), {"--record_losses"});
  return Losses(Finish(cluster));
}

// Bytes of the GPU that nobody has.
size_t FreeMemory() {
  const worker::cuda::Driver& driver = **worker::cuda::SharedDriver();
  worker::cuda::CUcontext context = nullptr;
  size_t free = 0;
  size_t total = 0;
  REQUIRE(driver->DevicePrimaryCtxRetain(&context, 0) == worker::cuda::kSuccess);
  REQUIRE(driver->CtxSetCurrent(context) == worker::cuda::kSuccess);
  REQUIRE(driver->MemGetInfo(&free, &total) == worker::cuda::kSuccess);
  REQUIRE(driver->CtxSetCurrent(nullptr) == worker::cuda::kSuccess);
  REQUIRE(driver->DevicePrimaryCtxRelease(0) == worker::cuda::kSuccess);
  return free;
}

TEST_CASE("the examples train on a GPU, and on a GPU beside a CPU, as on CPUs") {
  for (const std::string example : {"digits", "residual", "text", "gan"}) {
    const std::vector<double> on_cpus = LossesOfExample(example, 0);
    for (const int on_gpu : {1, 2}) {
      INFO(example << ", workers on the GPU: " << on_gpu);
      CHECK(LargestRelativeDifference(on_cpus, LossesOfExample(example, on_gpu)) < 1e-4);
    }
  }
}

TEST_CASE("a worker that is killed leaves its GPU's memory free, and its job ends well") {
  constexpr size_t kSlack = size_t{64} << 20;
  const size_t before = FreeMemory();
  Cluster cluster(1, 2);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.UseGpu(0);
  cluster.UseGpu(1);
  cluster.StartAll({.max_steps = 400,
                    .sync = "replicas_to_aggregate: 1 quorum_policy: SHRINK",
                    .model = kPlainModel},
                   {"--lease=2"});
  REQUIRE(cluster.worker(1).WaitForOutput("joined job", kWhole));
  REQUIRE(cluster.WaitForStep(20, kWhole));
  cluster.worker(1).Signal(SIGKILL);
  CHECK(cluster.chief().Wait(kWhole) == 0);
  CHECK(cluster.worker(0).Wait(kWhole) == 0);
  CHECK(FreeMemory() + kSlack > before);
}

}  // namespace
}  // namespace lockstep::test
