// Forward and backward of the demo's network with one worker's batch of the demo, against the same
// network in PyTorch on the CPU.
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/bench/interleave.h"
#include "tests/bench/rows/rows.h"
#include "tests/bench/torch_peer.h"
#include "tests/bench/tower_side.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::bench {
namespace {

constexpr char kJobFile[] = "deploy/examples/digits/job.textproto";
constexpr int kThreads = 1;  // what each of the demo's three workers has on two cores
constexpr double kTarget = 0.8;

}  // namespace

absl::StatusOr<RowResult> ComputeDemoCnn(const BenchOptions& options) {
  RowResult result;
  result.unit = "steps/s";
  result.target = kTarget;
  LOCKSTEP_ASSIGN_OR_RETURN(const TowerModel demo, LoadTowerModel(kJobFile));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::unique_ptr<TowerSide> ours,
      TowerSide::Create(demo, std::make_shared<worker::CpuDevice>(kThreads), worker::cpu::Ops()));
  LOCKSTEP_RETURN_IF_ERROR(ours->SecondsFor(20).status());
  constexpr int64_t kTrial = 50;
  LOCKSTEP_ASSIGN_OR_RETURN(const double trial, ours->SecondsFor(kTrial));
  const int64_t steps =
      std::max<int64_t>(1, static_cast<int64_t>(kTrial * options.run_seconds / trial));
  const Measure our_rate = [&]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, ours->SecondsFor(steps));
    return static_cast<double>(steps) / seconds;
  };
  const absl::StatusOr<std::unique_ptr<TorchPeer>> peer =
      TorchPeer::Start({.python = options.torch_python, .threads = kThreads}, demo);
  if (!peer.ok()) {
    result.peer = absl::StrCat("none, ", peer.status().message());
    LOCKSTEP_ASSIGN_OR_RETURN(result.value, MedianOf(options.rounds, our_rate));
    return result;
  }
  result.peer = (*peer)->name();
  result.note = absl::StrCat("batch ", demo.batch, ", threads ", kThreads, "; ", (*peer)->how());
  const Measure their_rate = [&]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, (*peer)->SecondsFor(steps));
    return static_cast<double>(steps) / seconds;
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const Medians medians,
                            Interleave(options.rounds, our_rate, their_rate));
  result.value = medians.ours;
  result.peer_value = medians.theirs;
  return result;
}

}  // namespace lockstep::bench
