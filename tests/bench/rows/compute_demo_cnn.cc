// Forward and backward of the demo's network with one worker's batch of the demo, against the same
// network in PyTorch on the CPU.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/model/graph.h"
#include "common/model/initial_value.h"
#include "tests/bench/interleave.h"
#include "tests/bench/network_json.h"
#include "tests/bench/peer_process.h"
#include "tests/bench/rows/rows.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::bench {
namespace {

constexpr char kJobFile[] = "deploy/examples/digits/job.textproto";
constexpr char kPeerScript[] = "tests/bench/torch_demo_cnn.py";
constexpr int kThreads = 1;  // what each of the demo's three workers has on two cores
constexpr double kTarget = 0.8;

struct DemoModel {
  ModelGraph graph;
  int64_t batch = 0;
};

absl::StatusOr<DemoModel> LoadDemo() {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(kJobFile));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJob(&loaded.job, loaded.job.local().workers()));
  DemoModel demo;
  LOCKSTEP_ASSIGN_OR_RETURN(demo.graph, ModelGraph::Build(loaded.model));
  demo.batch = loaded.job.batch_per_tower();
  return demo;
}

// A tower with everything it reads and writes.
class OurSide {
 public:
  static absl::StatusOr<std::unique_ptr<OurSide>> Create(const DemoModel& demo) {
    const ModelGraph& graph = demo.graph;
    auto side = std::make_unique<OurSide>();
    LOCKSTEP_ASSIGN_OR_RETURN(side->towers_,
                              worker::TowerGroup::Create(graph, &side->device_, worker::cpu::Ops(),
                                                         {.batch_per_tower = demo.batch}));
    for (const ModelVariable& variable : graph.variables()) {
      side->variables_.emplace_back(variable.dtype, variable.shape);
      FillInitialValue(variable.initializer, 1, variable.name, side->variables_.back().view());
      side->gradients_.emplace_back(variable.dtype, variable.shape);
    }
    for (Tensor& variable : side->variables_) side->variable_views_.push_back(variable.view());
    for (Tensor& gradient : side->gradients_) side->gradient_views_.push_back(gradient.view());

    std::vector<int64_t> dims = {demo.batch};
    for (int64_t extent : graph.input_shape().dims()) dims.push_back(extent);
    side->batch_.features = Tensor(DType::kFloat32, Shape(absl::MakeConstSpan(dims)));
    const Philox generator(1, "features");
    uint64_t counter = 0;
    for (float& pixel : side->batch_.features.as<float>()) {
      pixel = UniformFloat(generator.At(counter++)[0]);
    }
    side->batch_.labels = Tensor(DType::kInt32, Shape({demo.batch}));
    for (int64_t i = 0; i < demo.batch; ++i) {
      side->batch_.labels.as<int32_t>()[i] = static_cast<int32_t>(i % graph.num_outputs());
    }
    return side;
  }

  double SecondsFor(int64_t steps) {
    const absl::Duration start = Clock::Real()->Monotonic();
    for (int64_t i = 0; i < steps; ++i) {
      towers_
          ->Train({&batch_, 1}, {variable_views_}, gradient_views_, 1, [](std::span<const int>) {})
          .value();
    }
    return absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
  }

 private:
  worker::CpuDevice device_{kThreads};
  std::unique_ptr<worker::TowerGroup> towers_;
  worker::Batch batch_;
  std::vector<Tensor> variables_;
  std::vector<Tensor> gradients_;
  std::vector<TensorView> variable_views_;
  std::vector<MutableTensorView> gradient_views_;
};

absl::StatusOr<double> PeerSecondsFor(PeerProcess& peer, int64_t steps) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, peer.Ask(absl::StrCat(steps)));
  double seconds = 0;
  if (!absl::SimpleAtod(answer, &seconds)) {
    return absl::InternalError(absl::StrCat(kPeerScript, ": expected seconds, got ", answer));
  }
  return seconds;
}

}  // namespace

absl::StatusOr<RowResult> ComputeDemoCnn(const BenchOptions& options) {
  RowResult result;
  result.unit = "steps/s";
  result.target = kTarget;
  LOCKSTEP_ASSIGN_OR_RETURN(const DemoModel demo, LoadDemo());
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<OurSide> ours, OurSide::Create(demo));
  ours->SecondsFor(20);
  constexpr int64_t kTrial = 50;
  const int64_t steps = std::max<int64_t>(
      1, static_cast<int64_t>(kTrial * options.run_seconds / ours->SecondsFor(kTrial)));
  const Measure our_rate = [&]() -> absl::StatusOr<double> {
    return static_cast<double>(steps) / ours->SecondsFor(steps);
  };

  LOCKSTEP_ASSIGN_OR_RETURN(nlohmann::json network, NetworkJson(demo.graph));
  network["batch"] = demo.batch;
  network["threads"] = kThreads;
  absl::StatusOr<std::unique_ptr<PeerProcess>> peer =
      PeerProcess::Start({options.torch_python, kPeerScript});
  const absl::StatusOr<std::string> hello =
      peer.ok() ? (*peer)->Ask(network.dump()) : absl::StatusOr<std::string>(peer.status());
  if (!hello.ok()) {
    result.peer = absl::StrCat("none, PyTorch did not start: ", hello.status().message(),
                               ". Remedy: ./lockstep bench --peers");
    LOCKSTEP_ASSIGN_OR_RETURN(result.value, MedianOf(options.rounds, our_rate));
    return result;
  }
  const nlohmann::json peer_says = nlohmann::json::parse(*hello);
  result.peer = absl::StrCat("PyTorch ", peer_says["version"].get<std::string>());
  result.note = absl::StrCat("batch ", demo.batch, ", threads ", kThreads, "; PyTorch in ",
                             peer_says["layout"].get<std::string>(), ", its faster layout, with ",
                             peer_says["blas"].get<std::string>());
  const Measure their_rate = [&]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(const double seconds, PeerSecondsFor(**peer, steps));
    return static_cast<double>(steps) / seconds;
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const Medians medians,
                            Interleave(options.rounds, our_rate, their_rate));
  result.value = medians.ours;
  result.peer_value = medians.theirs;
  return result;
}

}  // namespace lockstep::bench
