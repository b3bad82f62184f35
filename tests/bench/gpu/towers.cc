#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/contest.h"
#include "tests/bench/gpu/gpu.h"
#include "tests/bench/gpu/rows.h"
#include "tests/bench/torch_peer.h"
#include "tests/bench/tower_side.h"

namespace lockstep::bench::gpu {
namespace {

constexpr int kSteps = 100;
constexpr double kEagerTarget = 3;
constexpr double kCompiledTarget = 1;

absl::StatusOr<std::unique_ptr<TowerSide>> MakeTower(const TowerModel& model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Gpu gpu, Gpu::Open());
  return TowerSide::Create(model, gpu.device(), gpu.ops());
}

// "steps/s", of sides that are made when they are first asked.
template <typename Made>
Measure RateOf(std::function<absl::StatusOr<std::unique_ptr<Made>>()> make) {
  auto side = std::make_shared<std::unique_ptr<Made>>();
  return [make, side]() -> absl::StatusOr<double> {
    if (*side == nullptr) {
      LOCKSTEP_ASSIGN_OR_RETURN(*side, make());
      LOCKSTEP_RETURN_IF_ERROR((*side)->SecondsFor(kSteps).status());
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, (*side)->SecondsFor(kSteps));
    return kSteps / seconds;
  };
}

Contest TowersOf(const BenchOptions& options) {
  Contest contest{.unit = "steps/s", .higher_is_better = true};
  contest.note = "float32 without TF32; ours with the values to the GPU and the gradients back";
  for (const std::string demo : {"digits", "fashion"}) {
    const auto model = [demo] {
      return LoadTowerModel(absl::StrCat("deploy/examples/", demo, "/job.textproto"));
    };
    const auto torch = [model, python = options.torch_python](bool compiled) {
      return [model, python, compiled]() -> absl::StatusOr<std::unique_ptr<TorchPeer>> {
        LOCKSTEP_ASSIGN_OR_RETURN(const TowerModel loaded, model());
        return TorchPeer::Start({.python = python, .on_gpu = true, .compiled = compiled}, loaded);
      };
    };
    const auto ours = [model]() -> absl::StatusOr<std::unique_ptr<TowerSide>> {
      LOCKSTEP_ASSIGN_OR_RETURN(const TowerModel loaded, model());
      return MakeTower(loaded);
    };
    const std::string name = "gpu_" + demo;
    contest.sides.push_back({name, name, RateOf<TowerSide>(ours)});
    contest.sides.push_back({demo + "/eager", "PyTorch eager", RateOf<TorchPeer>(torch(false))});
    contest.sides.push_back(
        {demo + "/compile", "torch.compile, CUDA graphs", RateOf<TorchPeer>(torch(true))});
    contest.comparisons.push_back({name + "/eager", name, demo + "/eager", kEagerTarget});
    contest.comparisons.push_back({name + "/compile", name, demo + "/compile", kCompiledTarget});
  }
  return contest;
}

}  // namespace

RowGroup TowerRows() { return AsGroup(TowersOf); }

}  // namespace lockstep::bench::gpu
