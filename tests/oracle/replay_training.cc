#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/rules.h"
#include "tests/oracle/sparse_input.h"
#include "tests/oracle/trained_variable.h"
#include "tests/reference/dense_accumulator.h"
#include "tests/reference/sparse_accumulator.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

// What dense and sparse training differ in: the accumulator, and how its mean is applied.
struct DenseTraining {
  using Accumulator = reference::DenseAccumulator;

  static reference::PartialShape Declared(const TensorView& variable) {
    return reference::PartialShape(variable.shape);
  }
  static absl::StatusOr<Tensor> Read(const json& entry, const TensorView& variable) {
    return TensorOf(variable.dtype, variable.shape, Flatten(entry.at("values")));
  }
};

struct SparseTraining {
  using Accumulator = reference::SparseAccumulator;

  // As SyncReplicasOptimizer declares it: any rows are accepted.
  static reference::PartialShape Declared(const TensorView&) {
    return reference::PartialShape(Shape());
  }
  static absl::StatusOr<SparseInput> Read(const json& entry, const TensorView& variable) {
    std::vector<int64_t> dims(variable.shape.dims().begin(), variable.shape.dims().end());
    dims.at(0) = static_cast<int64_t>(entry.at("indices").size());
    LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
    return SparseInputOf(entry, variable.dtype, shape);
  }
};

template <typename Training>
class TrainingReplay {
 public:
  static absl::StatusOr<std::unique_ptr<TrainingReplay>> Create(const json& script,
                                                                Comparison* comparison) {
    LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, DTypeIn(script));
    LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(script, "shape"));
    LOCKSTEP_ASSIGN_OR_RETURN(Tensor initial,
                              TensorOf(dtype, shape, Flatten(script.at("initial"))));
    LOCKSTEP_ASSIGN_OR_RETURN(auto rule,
                              RuleOf(script.at("optimizer"), script.at("hyper_parameters")));
    LOCKSTEP_ASSIGN_OR_RETURN(LearningRateSchedule schedule,
                              ScheduleOf(script.at("learning_rate")));
    const json& averages = script.at("averages");
    const MovingAverageOptions options{averages.at("decay"), averages.at("num_updates")};
    return std::unique_ptr<TrainingReplay>(
        new TrainingReplay(TrainedVariable(std::move(rule), options, std::move(initial)),
                           std::move(schedule), comparison));
  }

  absl::Status Run(const json& entry) {
    const std::string op = entry.at("op");
    if (op == "push") return Push(entry);
    if (op == "apply") return Apply(entry);
    return absl::InvalidArgumentError(absl::StrCat("training has no \"", op, "\""));
  }

 private:
  TrainingReplay(TrainedVariable variable, LearningRateSchedule schedule, Comparison* comparison)
      : variable_(std::move(variable)),
        accumulator_(variable_.value().dtype, Training::Declared(variable_.value()),
                     reference::Reduction::kMean),
        schedule_(std::move(schedule)),
        comparison_(comparison) {}

  absl::Status Push(const json& entry) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto gradient, Training::Read(entry, variable_.value()));
    LOCKSTEP_RETURN_IF_ERROR(
        accumulator_.Apply(GlobalStep(entry.at("local_step")), gradient.view()).status());
    comparison_->Equal("num_accumulated", entry.at("num_accumulated"),
                       accumulator_.num_accumulated());
    return absl::OkStatus();
  }

  absl::Status Apply(const json& entry) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto takes,
                              accumulator_.Take(reference::TakeId(take_++), entry.at("aggregate")));
    comparison_->Equal("completed takes", 1, takes.size());
    if (takes.empty()) return absl::OkStatus();
    LOCKSTEP_ASSIGN_OR_RETURN(const auto taken, std::move(takes.front().gradient));
    const float rate = LearningRateAt(schedule_, step_);
    variable_.Apply(taken, rate, step_);
    step_ = step_.next();
    comparison_->Equal("global_step", entry.at("global_step"), step_.value());
    const DType dtype = variable_.value().dtype;
    comparison_->Near("learning_rate", DType::kFloat32, {entry.at("learning_rate")}, {rate});
    comparison_->Near("variable", dtype, Flatten(entry.at("variable")),
                      ElementsOf(variable_.value()));
    comparison_->Near("average", dtype, Flatten(entry.at("average")),
                      ElementsOf(variable_.average()));
    return absl::OkStatus();
  }

  TrainedVariable variable_;
  typename Training::Accumulator accumulator_;
  const LearningRateSchedule schedule_;
  Comparison* const comparison_;
  GlobalStep step_;
  uint64_t take_ = 0;
};

template <typename Training>
absl::Status ReplayTrainingOf(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto replay,
                            TrainingReplay<Training>::Create(script, comparison));
  int number = 0;
  for (const json& entry : script.at("log")) {
    comparison->Enter(number++);
    LOCKSTEP_RETURN_IF_ERROR(replay->Run(entry));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayTraining(const json& script, Comparison* comparison) {
  return script.at("sparse") ? ReplayTrainingOf<SparseTraining>(script, comparison)
                             : ReplayTrainingOf<DenseTraining>(script, comparison);
}

}  // namespace lockstep::oracle
