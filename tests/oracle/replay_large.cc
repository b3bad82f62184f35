#include "tests/oracle/replay_large.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/update/dense_update.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/initial_checkpoint.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/shard_setup.h"
#include "tests/support/await.h"
#include "tests/support/payload_of.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

constexpr char kName[] = "v";
constexpr size_t kLeastBytes = 3 * DenseUpdate::kRangeBytes - 1000;  // the last chunk is shorter
constexpr size_t kMessageBytes = 100'000;                            // cut through chunks

// The pushes of a step, and what TensorFlow had after it.
struct Step {
  std::vector<json> pushes;
  json apply;
  uint32_t num_fresh = 0;
  bool is_ahead = false;  // a gradient is stamped with a later step
};

std::vector<Step> StepsOf(const json& log) {
  std::vector<Step> steps(1);
  for (const json& entry : log) {
    Step& step = steps.back();
    const auto number = static_cast<int64_t>(steps.size()) - 1;
    if (entry.at("op") == "apply") {
      step.apply = entry;
      steps.emplace_back();
      continue;
    }
    step.num_fresh += entry.at("local_step") >= number;
    step.is_ahead = step.is_ahead || entry.at("local_step") > number;
    step.pushes.push_back(entry);
  }
  steps.pop_back();
  return steps;
}

uint32_t ReplicasOf(const std::vector<Step>& steps, GradientPath path) {
  if (path == GradientPath::kEarlyChunks) return steps.at(0).num_fresh;
  return std::ranges::max(steps, {}, &Step::num_fresh).num_fresh;
}

class LargeJob {
 public:
  LargeJob(Shape small, GradientPath path)
      : small_(std::move(small)),
        path_(path),
        repeats_(static_cast<int64_t>(kLeastBytes / (small_.num_elements() * sizeof(float)) + 1)),
        shape_({small_.dim(0) * repeats_, small_.dim(1)}) {}
  ~LargeJob() { shard_.Stop(); }

  absl::Status Create(const json& script, uint32_t replicas) {
    const test::TemporaryFolder folder;
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor initial, Repeated(script.at("initial")));
    std::vector<NamedValue> values;
    values.push_back({kName, std::move(initial)});
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string checkpoint,
                              WriteInitialCheckpoint(folder.path(), script, std::move(values)));
    CreateVariablesRequest plan;
    *plan.mutable_command() = ChiefOfScript();
    plan.mutable_placement()->set_shards(1);
    VariableSpec* const spec = plan.mutable_placement()->add_variables();
    spec->set_name(kName);
    spec->set_dtype(FLOAT32);
    for (const int64_t dim : shape_.dims()) spec->add_dims(dim);
    spec->set_trainable(true);
    LOCKSTEP_ASSIGN_OR_RETURN(*plan.mutable_optimizer(), OptimizerOf(script));
    plan.set_token_policy(PER_REPLICA);
    plan.set_total_num_replicas(replicas);
    plan.set_replicas_to_aggregate(replicas);
    plan.set_every_replica_counts(path_ == GradientPath::kEarlyChunks);
    plan.set_restore_from(checkpoint);
    ps::View view{.command = ChiefOfScript(), .epoch = Epoch(1)};
    for (uint32_t worker = 0; worker < replicas; ++worker) {
      view.members.push_back({WorkerIndex(worker), IdentityOf(worker).incarnation});
    }
    LOCKSTEP_RETURN_IF_ERROR(shard_.SetView(view).status());
    return shard_.CreateVariables(plan).status();
  }

  absl::Status Run(const Step& step, Comparison* comparison) {
    Answer<ps::ClosedStep> closed;
    shard_.Grant({.command = ChiefOfScript(),
                  .step = step_,
                  .required = step.num_fresh,
                  .learning_rate = step.apply.at("learning_rate"),
                  .commit = true},
                 closed.done());
    uint32_t num_fresh = 0;
    for (const json& push : step.pushes) {
      const GlobalStep local_step(push.at("local_step"));
      const bool is_fresh = local_step >= step_;
      const bool is_last = is_fresh && num_fresh + 1 == step.num_fresh;
      LOCKSTEP_ASSIGN_OR_RETURN(
          const ps::PushStatus status,
          Push(is_fresh ? num_fresh : 0, local_step, push.at("values"), is_last, comparison));
      comparison->Equal("accepted", is_fresh, status == ps::PushStatus::kAccepted);
      num_fresh += is_fresh;
      if (path_ == GradientPath::kSharedMemory && is_fresh && !is_last) {
        comparison->Equal("bytes that the shard holds", 0, shard_.Report().held_bytes);
      }
    }
    step_ = step_.next();
    if (!closed.answered()) return absl::InternalError("the step has not closed");
    return Compare(step.apply.at("variable"), comparison);
  }

 private:
  absl::StatusOr<Tensor> Repeated(const json& values) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor once,
                              TensorOf(DType::kFloat32, small_, Flatten(values)));
    Tensor all(DType::kFloat32, shape_);
    auto* const to = static_cast<std::byte*>(all.data());
    for (int64_t i = 0; i < repeats_; ++i) {
      std::memcpy(to + i * once.num_bytes(), once.data(), once.num_bytes());
    }
    return all;
  }

  absl::StatusOr<ps::PushStatus> Push(uint32_t worker, GlobalStep local_step, const json& values,
                                      bool is_last, Comparison* comparison) {
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor repeated, Repeated(values));
    const auto gradient = std::make_shared<const Tensor>(std::move(repeated));
    const std::span<const std::byte> bytes = gradient->view().bytes();
    const PushSeq push_seq(++num_pushes_);
    const bool is_cut = path_ == GradientPath::kEarlyChunks;
    const size_t message = is_cut ? kMessageBytes : bytes.size();
    absl::StatusOr<ps::PushStatus> status = ps::PushStatus::kPending;
    for (size_t at = 0; at < bytes.size(); at += message) {
      const std::span<const std::byte> part =
          bytes.subspan(at, std::min(message, bytes.size() - at));
      // Of a step whose gradients have come but for the last message.
      if (is_cut && is_last && at + part.size() == bytes.size()) {
        comparison->Equal("the first chunk can be pulled", true, HasFirstChunk());
      }
      ps::PushArguments arguments{
          .worker = IdentityOf(worker), .push_seq = push_seq, .local_step = local_step};
      arguments.pieces.push_back({VariableId(0), DType::kFloat32, shape_, at, part.size()});
      arguments.tensors = TensorsOf(part, gradient);
      LOCKSTEP_ASSIGN_OR_RETURN(const ps::PushResult result, shard_.Push(arguments));
      status = result.statuses.at(0);
    }
    return status;
  }

  ReceivedTensors TensorsOf(std::span<const std::byte> bytes,
                            const std::shared_ptr<const Tensor>& gradient) const {
    switch (path_) {
      case GradientPath::kMessages:
        return ReceivedTensors(ReceivedTensors::Segments{bytes});
      case GradientPath::kSharedMemory:
        return ReceivedTensors(
            std::make_shared<const ReceivedTensors::Segments>(ReceivedTensors::Segments{bytes}),
            {{bytes, bytes.size()}}, gradient);
      case GradientPath::kEarlyChunks:
        return ReceivedTensors(test::PayloadOf(bytes, bytes.size()));
    }
    return ReceivedTensors();
  }

  bool HasFirstChunk() {
    Answer<ps::PullResult> answer;
    shard_.Pull({IdentityOf(0),
                 step_.next(),
                 {{.variable = VariableId(0), .size = DenseUpdate::kRangeBytes}}},
                answer.done());
    return answer.answered();
  }

  absl::Status Compare(const json& expected, Comparison* comparison) {
    Answer<ps::PullResult> answer;
    shard_.Pull({IdentityOf(0), step_, {{.variable = VariableId(0)}}}, answer.done());
    if (!answer.answered()) {
      return absl::InternalError(absl::StrCat("there is no version ", step_.value()));
    }
    LOCKSTEP_ASSIGN_OR_RETURN(const ps::PullResult result, answer.Wait());
    comparison->Equal("version", step_.value(), result.version.value());
    const std::span<const std::byte> all = result.pieces.at(0).bytes;
    const size_t once = all.size() / static_cast<size_t>(repeats_);
    const std::vector<double> wanted = Flatten(expected);
    for (int64_t i = 0; i < repeats_; ++i) {
      const std::byte* const here = all.data() + i * once;
      // The last one may have other bits: as TensorFlow's, powers of what is left behind the last
      // whole vector are computed otherwise.
      if (i > 0 && std::memcmp(all.data(), here, once) == 0) continue;
      comparison->Near(absl::StrCat("variable, repetition ", i), DType::kFloat32, wanted,
                       ElementsOf({DType::kFloat32, small_, here}));
    }
    return absl::OkStatus();
  }

  const Shape small_;
  const GradientPath path_;
  const int64_t repeats_;
  const Shape shape_;
  ps::Shard shard_{ps::ShardOptions()};
  GlobalStep step_;
  uint64_t num_pushes_ = 0;
};

}  // namespace

absl::StatusOr<LargeReplay> ReplayLarge(const json& script, GradientPath path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, DTypeIn(script));
  if (script.at("sparse") || dtype != DType::kFloat32) {
    return absl::InvalidArgumentError("expected a dense script in float32");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(script, "shape"));
  const std::vector<Step> steps = StepsOf(script.at("log"));
  const uint32_t replicas = ReplicasOf(steps, path);
  LargeJob job(shape, path);
  LOCKSTEP_RETURN_IF_ERROR(job.Create(script, replicas));
  LargeReplay replay;
  for (const Step& step : steps) {
    const bool takes_all = step.num_fresh == replicas && !step.is_ahead;
    if (path == GradientPath::kEarlyChunks && !takes_all) break;
    replay.comparison.Enter(replay.num_steps);
    LOCKSTEP_RETURN_IF_ERROR(job.Run(step, &replay.comparison));
    ++replay.num_steps;
  }
  return replay;
}

}  // namespace lockstep::oracle
