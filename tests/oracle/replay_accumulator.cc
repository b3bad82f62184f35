#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "tests/oracle/sparse_input.h"
#include "tests/reference/dense_accumulator.h"
#include "tests/reference/sparse_accumulator.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

json CodeOf(const absl::Status& status) {
  return status.ok() ? json() : json(absl::StatusCodeToString(status.code()));
}

json ExpectedCode(const json& entry) {
  return entry.at("error").is_null() ? json() : entry.at("error").at("code");
}

reference::PartialShape DeclaredShape(const json& script) {
  const json& dims = script.at("declared_shape");
  return dims.is_null() ? reference::PartialShape()
                        : reference::PartialShape(dims.get<std::vector<int64_t>>());
}

reference::Reduction ReductionIn(const json& script) {
  return script.at("reduction") == "SUM" ? reference::Reduction::kSum : reference::Reduction::kMean;
}

// What the two kinds of accumulators differ in: reading a gradient, and comparing what was taken.
struct DenseSide {
  using Accumulator = reference::DenseAccumulator;

  static absl::StatusOr<Tensor> Read(const json& entry, DType dtype) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(entry, "values_shape"));
    return TensorOf(dtype, shape, Flatten(entry.at("values")));
  }
  static void Compare(const json& expected, const reference::DenseGradients& got,
                      Comparison* comparison) {
    const Tensor reduced = got.Reduced();
    comparison->Near("taken values", reduced.dtype(), Flatten(expected.at("values")),
                     ElementsOf(reduced.view()));
  }
};

struct SparseSide {
  using Accumulator = reference::SparseAccumulator;

  static absl::StatusOr<SparseInput> Read(const json& entry, DType dtype) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, ShapeIn(entry, "values_shape"));
    return SparseInputOf(entry, dtype, shape);
  }
  static void Compare(const json& expected, const reference::SparseGradient& got,
                      Comparison* comparison) {
    comparison->Equal("taken indices", expected.at("indices"), got.indices);
    comparison->Equal("taken dense_shape", expected.at("dense_shape"), got.dense_shape);
    comparison->Near("taken values", got.values.dtype(), Flatten(expected.at("values")),
                     ElementsOf(got.values.view()));
  }
};

template <typename Side>
class AccumulatorReplay {
 public:
  using Accumulator = typename Side::Accumulator;

  AccumulatorReplay(const json& script, DType dtype, Comparison* comparison)
      : dtype_(dtype),
        accumulator_(dtype, DeclaredShape(script), ReductionIn(script)),
        comparison_(comparison) {}

  absl::Status Run(const json& entry) {
    const std::string op = entry.at("op");
    if (op == "push") {
      LOCKSTEP_RETURN_IF_ERROR(Push(entry));
    } else if (op == "take") {
      Take(entry);
    } else if (op == "set_step") {
      accumulator_.SetGlobalStep(GlobalStep(entry.at("step")));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("an accumulator has no \"", op, "\""));
    }
    comparison_->Equal("num_accumulated", entry.at("num_accumulated"),
                       accumulator_.num_accumulated());
    CompareFinished(entry.at("completed"));
    return absl::OkStatus();
  }

 private:
  absl::Status Push(const json& entry) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto gradient, Side::Read(entry, dtype_));
    auto applied = accumulator_.Apply(GlobalStep(entry.at("local_step")), gradient.view());
    comparison_->Equal("error", ExpectedCode(entry), CodeOf(applied.status()));
    if (applied.ok()) Collect(std::move(applied->finished));
    return absl::OkStatus();
  }

  void Take(const json& entry) {
    auto finished = accumulator_.Take(reference::TakeId(entry.at("id")), entry.at("num_required"));
    comparison_->Equal("error", ExpectedCode(entry), CodeOf(finished.status()));
    if (finished.ok()) Collect(*std::move(finished));
  }

  void Collect(std::vector<typename Accumulator::FinishedTake> takes) {
    for (auto& take : takes) finished_.insert_or_assign(take.id.value(), std::move(take));
  }

  void CompareFinished(const json& completed) {
    json ids = json::array();
    json expected_ids = json::array();
    for (const auto& [id, take] : finished_) ids.push_back(id);
    for (const json& take : completed) expected_ids.push_back(take.at("id"));
    comparison_->Equal("completed takes", expected_ids, ids);
    for (const json& expected : completed) {
      const auto take = finished_.find(expected.at("id"));
      if (take == finished_.end()) continue;
      comparison_->Equal("error of the take", json(), CodeOf(take->second.gradient.status()));
      if (take->second.gradient.ok()) {
        Side::Compare(expected, *take->second.gradient, comparison_);
      }
    }
    finished_.clear();
  }

  const DType dtype_;
  Accumulator accumulator_;
  Comparison* const comparison_;
  std::map<uint64_t, typename Accumulator::FinishedTake> finished_;  // since the last entry
};

template <typename Side>
absl::Status ReplayAccumulatorOf(const json& script, DType dtype, Comparison* comparison) {
  AccumulatorReplay<Side> replay(script, dtype, comparison);
  int number = 0;
  for (const json& entry : script.at("log")) {
    comparison->Enter(number++);
    LOCKSTEP_RETURN_IF_ERROR(replay.Run(entry));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplayAccumulator(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, DTypeIn(script));
  return script.at("sparse") ? ReplayAccumulatorOf<SparseSide>(script, dtype, comparison)
                             : ReplayAccumulatorOf<DenseSide>(script, dtype, comparison);
}

}  // namespace lockstep::oracle
