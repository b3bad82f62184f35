// Gradients of whole steps on the device of the test, against those of the CPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker {
namespace {

// By the largest magnitude of each tensor.
bool AreClose(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t v = 0; v < a.size(); ++v) {
    float largest = 0;
    for (const float value : b[v].as<float>()) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < b[v].as<float>().size(); ++i) {
      if (!(std::abs(a[v].as<float>()[i] - b[v].as<float>()[i]) <= 1e-5f * largest)) return false;
    }
  }
  return true;
}

TEST_CASE("a device trains to the CPU's gradients") {
  for (const char* const model : Models()) {
    const ModelGraph graph = GraphOf(model);
    for (const int towers : {1, 2}) {
      for (const size_t kind : {0, 2, 3}) {  // not by value, of which rounding is not a small part
        INFO(model << ", towers " << towers << ", reduction " << kind);
        const ReducerOptions options = OptionsOf(towers, kind);
        CpuDevice cpu(1);
        const std::shared_ptr<Device> device = test::MakeTestDevice(1);
        const auto group = *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), options);
        const auto on_cpu = *MakeGroup(graph, &cpu, cpu::Ops(), options);
        for (int variant = 0; variant < kVariants; ++variant) {
          CHECK(AreClose(*Train(group.get(), graph, towers, variant),
                         *Train(on_cpu.get(), graph, towers, variant)));
        }
      }
    }
  }
}

TEST_CASE("a device that is used again trains to the same bits") {
  for (size_t model = 0; model < Models().size(); ++model) {
    INFO(Models()[model]);
    const ModelGraph graph = GraphOf(Models()[model]);
    std::vector<std::vector<Tensor>> runs;
    for (int run = 0; run < 2; ++run) {
      const std::shared_ptr<Device> device = test::MakeTestDevice(1, /*seed=*/run + 1);
      const auto group =
          *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), OptionsOf(2, model));
      for (int variant = 0; variant < kVariants; ++variant) {
        runs.push_back(*Train(group.get(), graph, 2, variant));
      }
    }
    for (int variant = 0; variant < kVariants; ++variant) {
      CHECK(AreSame(runs[variant], runs[kVariants + variant]));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
