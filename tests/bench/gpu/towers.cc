#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/gpu/gpu.h"
#include "tests/bench/gpu/rows.h"
#include "tests/bench/torch_peer.h"
#include "tests/bench/tower_side.h"

namespace lockstep::bench::gpu {
namespace {

struct TowerCase {
  std::string name;
  std::string job;  // the file
  int steps = 0;    // of a round
  double eager_target = 0;
  double compiled_target = 0;
  // In place of the job's.
  std::optional<worker::Precision> precision = std::nullopt;
  int64_t batch = 0;
};

std::vector<TowerCase> Demos() {
  constexpr int kSteps = 100;
  std::vector<TowerCase> demos;
  for (const std::string demo : {"digits", "fashion", "clicks"}) {
    demos.push_back({absl::StrCat("gpu_", demo),
                     absl::StrCat("deploy/examples/", demo, "/job.textproto"), kSteps, 3, 1});
  }
  return demos;
}

absl::StatusOr<TowerModel> Load(const TowerCase& of) {
  LOCKSTEP_ASSIGN_OR_RETURN(TowerModel model, LoadTowerModel(of.job));
  model.precision = of.precision.value_or(model.precision);
  if (of.batch > 0) model.batch = of.batch;
  return model;
}

absl::StatusOr<std::unique_ptr<TowerSide>> MakeTower(const TowerCase& of) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TowerModel model, Load(of));
  LOCKSTEP_ASSIGN_OR_RETURN(const Gpu gpu, Gpu::Open(model.precision));
  return TowerSide::Create(model, gpu.device(), gpu.ops());
}

absl::StatusOr<std::unique_ptr<TorchPeer>> StartTorch(const TowerCase& of,
                                                      const std::string& python, bool compiled) {
  LOCKSTEP_ASSIGN_OR_RETURN(const TowerModel model, Load(of));
  return TorchPeer::Start({.python = python, .on_gpu = true, .compiled = compiled}, model);
}

// "steps/s", of sides that are made when they are first asked.
template <typename Made>
Measure RateOf(int steps, std::function<absl::StatusOr<std::unique_ptr<Made>>()> make) {
  auto side = std::make_shared<std::unique_ptr<Made>>();
  return [steps, make, side]() -> absl::StatusOr<double> {
    if (*side == nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(*side, make());
      LOCKSTEP_RETURN_IF_ERROR((*side)->SecondsFor(steps).status());
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, (*side)->SecondsFor(steps));
    return steps / seconds;
  };
}

void AddTower(const TowerCase& of, const std::string& python, Contest* contest) {
  const std::string eager = of.name + "/eager";
  const std::string compiled = of.name + "/compile";
  const auto torch = [&](bool is_compiled) {
    return RateOf<TorchPeer>(
        of.steps, [of, python, is_compiled] { return StartTorch(of, python, is_compiled); });
  };
  contest->sides.push_back(
      {of.name, of.name, RateOf<TowerSide>(of.steps, [of] { return MakeTower(of); })});
  contest->sides.push_back({eager, "PyTorch eager", torch(false)});
  contest->sides.push_back({compiled, "torch.compile, CUDA graphs", torch(true)});
  contest->comparisons.push_back({eager, of.name, eager, of.eager_target});
  contest->comparisons.push_back({compiled, of.name, compiled, of.compiled_target});
}

Contest TowersOf(const BenchOptions& options) {
  Contest contest{.unit = "steps/s", .higher_is_better = true};
  contest.note = "float32 without TF32; ours with the values to the GPU and the gradients back";
  for (const TowerCase& demo : Demos()) AddTower(demo, options.torch_python, &contest);
  return contest;
}

// A group for each: the towers and the peers of one take most of a GPU's memory.
template <worker::Precision kPrecision>
Contest ResNet50Of(const BenchOptions& options) {
  constexpr bool kIsTf32 = kPrecision == worker::Precision::kTf32;
  const TowerCase tower{.name = kIsTf32 ? "gpu_resnet50_tf32" : "gpu_resnet50_bf16",
                        .job = "tests/bench/gpu/resnet50/job.textproto",
                        .steps = 5,
                        .eager_target = 1,
                        .compiled_target = 0.9,
                        .precision = kPrecision,
                        .batch = kIsTf32 ? 128 : 256};
  Contest contest{.unit = "steps/s", .higher_is_better = true};
  contest.note = absl::StrCat(tower.batch, " images of 224 x 224; PyTorch channels last");
  AddTower(tower, options.torch_python, &contest);
  return contest;
}

}  // namespace

RowGroup TowerRows() { return AsGroup(TowersOf); }
RowGroup ResNet50Tf32Rows() { return AsGroup(ResNet50Of<worker::Precision::kTf32>); }
RowGroup ResNet50Bfloat16Rows() { return AsGroup(ResNet50Of<worker::Precision::kBfloat16>); }

}  // namespace lockstep::bench::gpu
