#include "tests/oracle/numbers.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace lockstep::oracle {
namespace {

double NumberOf(const nlohmann::json& number) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (number == "inf") return infinity;
  if (number == "-inf") return -infinity;
  if (number == "nan") return std::numeric_limits<double>::quiet_NaN();
  return number.get<double>();
}

void AppendTo(std::vector<double>* flat, const nlohmann::json& nested) {
  if (!nested.is_array()) return flat->push_back(NumberOf(nested));
  for (const nlohmann::json& element : nested) AppendTo(flat, element);
}

template <typename Body>
void DispatchElement(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body.template operator()<float>();
    case DType::kFloat64:
      return body.template operator()<double>();
    default:
      LOCKSTEP_CHECK(dtype == DType::kFloat16);
      return body.template operator()<_Float16>();
  }
}

}  // namespace

std::vector<double> Flatten(const nlohmann::json& nested) {
  std::vector<double> flat;
  AppendTo(&flat, nested);
  return flat;
}

absl::StatusOr<Tensor> TensorOf(DType dtype, const Shape& shape,
                                const std::vector<double>& elements) {
  if (static_cast<size_t>(shape.num_elements()) != elements.size()) {
    return absl::InvalidArgumentError(absl::StrCat("expected ", shape.num_elements(),
                                                   " elements of shape ", shape.ToString(),
                                                   ", got ", elements.size()));
  }
  Tensor tensor(dtype, shape);
  DispatchElement(dtype, [&]<typename T>() {
    T* to = static_cast<T*>(tensor.data());
    for (const double element : elements) *to++ = static_cast<T>(element);
  });
  return tensor;
}

std::vector<double> ElementsOf(const TensorView& tensor) {
  std::vector<double> elements;
  DispatchElement(tensor.dtype, [&]<typename T>() {
    const T* from = static_cast<const T*>(tensor.data);
    elements.assign(from, from + tensor.num_elements());
  });
  return elements;
}

}  // namespace lockstep::oracle
