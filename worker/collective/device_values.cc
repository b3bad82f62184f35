#include "worker/collective/device_values.h"

#include <algorithm>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/element_math.h"

namespace lockstep::worker {
namespace {

const TensorView& TensorOf(const Value& value) {
  if (const auto* dense = std::get_if<TensorView>(&value)) return *dense;
  return std::get<IndexedSlicesView>(value).values;
}

// What must be equal on all devices.
Shape ComparedShape(const Value& value) {
  const Shape& shape = TensorOf(value).shape;
  return IsSparse(value) && shape.rank() > 0 ? WithRows(shape, 0) : shape;
}

absl::Status CheckSlices(const DeviceId& device, const Value& value) {
  const auto* sparse = std::get_if<IndexedSlicesView>(&value);
  if (sparse == nullptr) return absl::OkStatus();
  const Shape& shape = sparse->values.shape;
  if (shape.rank() > 0 && shape.dim(0) == static_cast<int64_t>(sparse->indices.size())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "IndexedSlices on ", ToString(device), ": ", sparse->indices.size(),
      " indices, values of shape ", shape.ToString(), ". Remedy: give one slice for each index"));
}

absl::Status CheckAlike(const DeviceId& device, const Value& value, const Value& first) {
  if (!HasElementMath(TensorOf(value).dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "value on ", ToString(device), ": expected a dtype with arithmetic, got ",
        Name(TensorOf(value).dtype), ". Remedy: reduce float16, bfloat16, float32 or float64"));
  }
  const auto describe = [](const Value& one) {
    return absl::StrCat(Name(TensorOf(one).dtype), " ", ComparedShape(one).ToString(),
                        IsSparse(one) ? " slices" : "");
  };
  if (describe(value) == describe(first)) return CheckSlices(device, value);
  return absl::InvalidArgumentError(absl::StrCat("value on ", ToString(device), ": expected ",
                                                 describe(first), " as on the first device, got ",
                                                 describe(value),
                                                 ". Remedy: give every tower the same model"));
}

absl::Status CheckDevicesDiffer(std::vector<DeviceId> devices, absl::string_view of) {
  std::ranges::sort(devices);
  const auto twice = std::ranges::adjacent_find(devices);
  if (twice == devices.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(of, ": ", ToString(*twice), " comes twice. Remedy: name each device once"));
}

}  // namespace

std::string ToString(const DeviceId& device) {
  return absl::StrCat("worker ", device.worker,
                      device.kind == DeviceKind::kCpu ? " cpu:" : " gpu:", device.index);
}

Value ViewOf(const OwnedValue& value) {
  return std::visit([](const auto& owned) { return Value(owned.view()); }, value);
}

OwnedValue CloneOf(const Value& value) {
  const TensorView& from = TensorOf(value);
  Tensor tensor(from.dtype, from.shape);
  Copy(from, tensor.view());
  if (!IsSparse(value)) return tensor;
  const auto& sparse = std::get<IndexedSlicesView>(value);
  return IndexedSlices{{sparse.indices.begin(), sparse.indices.end()}, std::move(tensor)};
}

bool IsSparse(const Value& value) { return std::holds_alternative<IndexedSlicesView>(value); }

std::vector<DeviceId> PerDevice::devices() const {
  std::vector<DeviceId> devices;
  for (const DeviceValue& value : values) {
    if (value.device.has_value()) devices.push_back(*value.device);
  }
  return devices;
}

bool PerDevice::has_sparse() const {
  return std::ranges::any_of(
      values, [](const DeviceValue& value) { return std::ranges::any_of(value.values, IsSparse); });
}

bool PerDevice::has_one_value_each() const {
  return std::ranges::all_of(values,
                             [](const DeviceValue& value) { return value.values.size() == 1; });
}

const DeviceValue& PerDevice::at(const DeviceId& device) const {
  const auto found = std::ranges::find(values, device, &DeviceValue::device);
  LOCKSTEP_CHECK(found != values.end());
  return *found;
}

absl::Status CheckValues(const PerDevice& value) {
  const Value* first = nullptr;
  for (const DeviceValue& on_device : value.values) {
    if (!on_device.device.has_value()) {
      return absl::InvalidArgumentError(
          "a value without a device. Remedy: say which device has it, or give a PerDevice");
    }
    for (const Value& one : on_device.values) {
      if (first == nullptr) first = &one;
      LOCKSTEP_RETURN_IF_ERROR(CheckAlike(*on_device.device, one, *first));
    }
  }
  if (first == nullptr) {
    return absl::InvalidArgumentError(
        "`per_device_value` must be non-empty: no device has a value. Remedy: give at least one");
  }
  return CheckDevicesDiffer(value.devices(), "`per_device_value`");
}

std::vector<DeviceId> Mirrored::devices() const {
  std::vector<DeviceId> devices;
  for (const Copy& copy : copies) devices.push_back(copy.device);
  return devices;
}

const OwnedValue& Mirrored::at(const DeviceId& device) const {
  const auto found = std::ranges::find(copies, device, &Copy::device);
  LOCKSTEP_CHECK(found != copies.end());
  return found->value;
}

absl::Status CheckDestinations(const Destinations& destinations) {
  if (destinations.devices.empty()) {
    return absl::InvalidArgumentError(
        "destinations can not be empty. Remedy: name a device, or a value that has one");
  }
  return CheckDevicesDiffer(destinations.devices, "destinations");
}

bool AreSameSets(std::vector<DeviceId> a, std::vector<DeviceId> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

}  // namespace lockstep::worker
