#include "worker/peer/compare_reductions.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "common/tensor_proto/convert.h"
#include "worker/collective/check_same_tensors.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<std::vector<TensorSpec>> TensorsOf(const CompareRequest& request) {
  std::vector<TensorSpec> tensors;
  for (const CompareRequest::Tensor& tensor : request.tensors()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const DType dtype, FromProto(tensor.dtype()));
    LOCKSTEP_ASSIGN_OR_RETURN(Shape shape, Shape::Create(tensor.dims()));
    tensors.push_back({tensor.name(), dtype, std::move(shape)});
  }
  return tensors;
}

std::string Describe(const CompareRequest::Vector& vector) {
  return absl::StrCat(Printable(vector.algorithm(), kMaxShownAlgorithm), " over ", vector.length(),
                      " elements");
}

}  // namespace

CompareRequest DescribeReduction(const GroupReduction& reduction, size_t message_bytes) {
  CompareRequest request;
  for (const TensorSpec& spec : reduction.tensors) {
    CompareRequest::Tensor* const tensor = request.add_tensors();
    tensor->set_name(spec.name);
    tensor->set_dtype(ToProto(spec.dtype));
    for (const int64_t dim : spec.shape->dims()) tensor->add_dims(dim);
  }
  for (size_t v = 0; v < reduction.plan.schedules.size(); ++v) {
    CompareRequest::Vector* const vector = request.add_vectors();
    vector->set_algorithm(std::string(Name(reduction.plan.algorithms[v])));
    vector->set_length(static_cast<int64_t>(reduction.plan.schedules[v].length()));
  }
  request.set_towers(static_cast<uint32_t>(reduction.topology.towers));
  request.set_average(reduction.average);
  request.set_message_bytes(message_bytes);
  return request;
}

absl::Status CompareReductions(const CompareRequest& own, const CompareRequest& theirs,
                               const std::string& who) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<TensorSpec> own_tensors, TensorsOf(own));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<TensorSpec> their_tensors, TensorsOf(theirs));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameTensors(own_tensors, their_tensors, who));
  const auto differs = [&](const char* what, const auto& expected, const auto& got) {
    return absl::InvalidArgumentError(
        absl::StrCat("reduction: ", what, ": expected ", expected, ", got ", got, " from ", who,
                     ". Remedy: start every worker with the same job"));
  };
  if (own.towers() != theirs.towers()) return differs("towers", own.towers(), theirs.towers());
  if (own.average() != theirs.average()) {
    return differs("average", own.average() ? "true" : "false",
                   theirs.average() ? "true" : "false");
  }
  if (own.message_bytes() != theirs.message_bytes()) {
    return differs("bytes of a message", own.message_bytes(), theirs.message_bytes());
  }
  if (own.vectors_size() != theirs.vectors_size()) {
    return differs("vectors", own.vectors_size(), theirs.vectors_size());
  }
  for (int v = 0; v < own.vectors_size(); ++v) {
    const std::string expected = Describe(own.vectors(v));
    const std::string got = Describe(theirs.vectors(v));
    if (expected != got) return differs("all_reduce_spec", expected, got);
  }
  return absl::OkStatus();
}

}  // namespace lockstep::worker
