#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/numbers.h"
#include "tests/oracle/replay_kinds.h"
#include "worker/collective/all_reduce.h"
#include "worker/collective/reduction_to_one_device.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;
using worker::AccumulationFn;
using worker::Aggregation;
using worker::AllReduce;
using worker::CrossTowerOps;
using worker::DeviceId;
using worker::DeviceKind;
using worker::ReductionToOneDevice;

DeviceId Tower(int number) { return {0, DeviceKind::kCpu, number}; }

std::vector<DeviceId> TowersIn(const json& numbers) {
  std::vector<DeviceId> towers;
  for (const json& number : numbers) towers.push_back(Tower(number));
  return towers;
}

template <typename T>
void MaximumOf(absl::Span<const TensorView> terms, const MutableTensorView& to) {
  const auto count = static_cast<size_t>(to.num_elements());
  T* const largest = static_cast<T*>(to.data);
  std::copy_n(static_cast<const T*>(terms[0].data), count, largest);
  for (const TensorView& term : terms) {
    const T* const elements = static_cast<const T*>(term.data);
    for (size_t i = 0; i < count; ++i) largest[i] = std::max(largest[i], elements[i]);
  }
}

void Maximum(absl::Span<const TensorView> terms, const MutableTensorView& to) {
  if (to.dtype == DType::kFloat64) return MaximumOf<double>(terms, to);
  if (to.dtype == DType::kFloat16) return MaximumOf<_Float16>(terms, to);
  MaximumOf<float>(terms, to);
}

absl::StatusOr<std::unique_ptr<CrossTowerOps>> OpsOf(const json& script) {
  const std::string op = script.at("op");
  if (op == "hierarchical_copy") {
    LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<CrossTowerOps> ops,
                              AllReduce::Create({op, {script.at("num_packs"), 0, 10}}));
    return ops;
  }
  if (op != "reduction_to_one_device") {
    return absl::InvalidArgumentError(absl::StrCat("no cross-tower op is called \"", op, "\""));
  }
  const json& target = script.at("reduce_to_device");
  const bool is_maximum = script.at("accumulation") == "maximum";
  return std::make_unique<ReductionToOneDevice>(
      target.is_null() ? std::nullopt : std::optional(Tower(target)),
      is_maximum ? AccumulationFn(Maximum) : AccumulationFn());
}

absl::StatusOr<Aggregation> AggregationIn(const json& script) {
  const std::string name = script.at("aggregation");
  if (name == "SUM") return Aggregation::kSum;
  if (name == "MEAN") return Aggregation::kMean;
  return absl::InvalidArgumentError(absl::StrCat("no aggregation is called \"", name, "\""));
}

// The values of a log, with their memory.
class Batch {
 public:
  absl::Status Add(const json& entry, DType dtype) {
    worker::PerDevice value;
    for (size_t i = 0; i < entry.at("devices").size(); ++i) {
      const std::vector<int64_t> dims = entry.at("shapes").at(i);
      LOCKSTEP_ASSIGN_OR_RETURN(const Shape shape, Shape::Create(dims));
      LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor,
                                TensorOf(dtype, shape, Flatten(entry.at("values").at(i))));
      tensors_.push_back(std::move(tensor));
      worker::Value one = std::as_const(tensors_.back()).view();
      if (entry.contains("indices")) {
        indices_.push_back(entry.at("indices").at(i));
        one = IndexedSlicesView{indices_.back(), std::as_const(tensors_.back()).view()};
      }
      value.values.push_back({Tower(entry.at("devices").at(i)), {one}});
    }
    pairs_.push_back({std::move(value), TowersIn(entry.at("destinations"))});
    return absl::OkStatus();
  }

  absl::Span<const worker::ValueDestinationPair> pairs() const { return pairs_; }

 private:
  std::deque<Tensor> tensors_;
  std::deque<std::vector<int64_t>> indices_;
  std::vector<worker::ValueDestinationPair> pairs_;
};

void Compare(const json& entry, const worker::Mirrored& result, Comparison* comparison) {
  comparison->Equal("destinations", entry.at("result").size(), result.copies.size());
  const auto count = std::min(entry.at("result").size(), result.copies.size());
  for (size_t i = 0; i < count; ++i) {
    const worker::OwnedValue& value = result.copies[i].value;
    const auto* sparse = std::get_if<IndexedSlices>(&value);
    const Tensor& tensor = sparse != nullptr ? sparse->values : std::get<Tensor>(value);
    const auto dims = tensor.shape().dims();
    comparison->Equal(absl::StrCat("result_shape, destination ", i), entry.at("result_shape"),
                      std::vector<int64_t>(dims.begin(), dims.end()));
    comparison->Same(absl::StrCat("result, destination ", i), Flatten(entry.at("result").at(i)),
                     ElementsOf(tensor.view()));
    if (sparse == nullptr) continue;
    comparison->Equal(absl::StrCat("result_indices, destination ", i),
                      entry.at("result_indices").at(i), sparse->indices);
  }
}

}  // namespace

absl::Status ReplayCrossTower(const json& script, Comparison* comparison) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, DTypeIn(script));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<CrossTowerOps> ops, OpsOf(script));
  LOCKSTEP_ASSIGN_OR_RETURN(const Aggregation aggregation, AggregationIn(script));
  Batch batch;
  for (const json& entry : script.at("log")) LOCKSTEP_RETURN_IF_ERROR(batch.Add(entry, dtype));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<worker::Mirrored> results,
                            ops->BatchReduce(aggregation, batch.pairs()));
  for (size_t i = 0; i < results.size(); ++i) {
    comparison->Enter(static_cast<int>(i));
    Compare(script.at("log").at(i), results[i], comparison);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::oracle
