// Whole steps in bfloat16, of every kind of layer, beside the CPU's in float32.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker {
namespace {

// Of the gradient of a variable: a step rounds to 2^-9 several times, and some relus and maxima of
// these few examples go the other way.
constexpr double kTolerance = 0.25;

// |a - b| / |b| over all elements, in the Euclidean norm.
double RelativeDistance(const Tensor& a, const Tensor& b) {
  double difference = 0;
  double norm = 0;
  for (int64_t i = 0; i < b.num_elements(); ++i) {
    const double wanted = b.as<float>()[i];
    const double off = a.as<float>()[i] - wanted;
    difference += off * off;
    norm += wanted * wanted;
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

TEST_CASE("steps in bfloat16 have the gradients of float32, rounded") {
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    const auto device = test::MakeTestDevice(/*threads=*/1);
    CpuDevice cpu(/*threads=*/1);
    const auto group = *MakeGroup(graph, device.get(), test::OpsOfTestDevice());
    const auto reference = *MakeGroup(graph, &cpu, cpu::Ops());
    for (int variant = 0; variant < kVariants; ++variant) {
      const std::vector<Tensor> got = *Train(group.get(), graph, 1, variant);
      const std::vector<Tensor> wanted = *Train(reference.get(), graph, 1, variant);
      REQUIRE(got.size() == wanted.size());
      bool is_rounded = false;
      for (size_t i = 0; i < got.size(); ++i) {
        CAPTURE(model, variant, graph.variables()[i].name);
        CHECK(RelativeDistance(got[i], wanted[i]) < kTolerance);
        is_rounded = is_rounded || !SameBits(got[i], wanted[i]);
      }
      CHECK(is_rounded);
    }
  }
}

TEST_CASE("steps in bfloat16 have the same bits again, with one tower and with two") {
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const int towers : {1, 2}) {
      CAPTURE(model, towers);
      const auto train = [&](uint64_t seed) {
        const auto device = test::MakeTestDevice(/*threads=*/1, seed);
        const auto group =
            *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), OptionsOf(towers, model));
        return *Train(group.get(), graph, towers, /*variant=*/0);
      };
      const std::vector<Tensor> once = train(1);
      for (uint64_t seed = 2; seed <= 8; ++seed) CHECK(AreSame(train(seed), once));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
