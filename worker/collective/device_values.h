// Values on devices, as cross-tower ops take and give them. Nothing here copies to a device: memory
// is the host's.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/tensor/indexed_slices.h"
#include "common/tensor/tensor.h"

namespace lockstep::worker {

enum class DeviceKind { kCpu, kGpu };

struct DeviceId {
  int worker = 0;
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;

  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};
// "worker 1 cpu:0".
std::string ToString(const DeviceId& device);

// One value: a tensor, or IndexedSlices. Does not own.
using Value = std::variant<TensorView, IndexedSlicesView>;
using OwnedValue = std::variant<Tensor, IndexedSlices>;

Value ViewOf(const OwnedValue& value);
OwnedValue CloneOf(const Value& value);
bool IsSparse(const Value& value);

// What one device has: a value, or a MapOutput, which is any number of them.
struct DeviceValue {
  std::optional<DeviceId> device;  // nullopt is refused
  std::vector<Value> values;
};

// In the order of the devices, which is that of additions.
struct PerDevice {
  std::vector<DeviceValue> values;

  PerDevice() = default;
  explicit PerDevice(std::vector<DeviceValue> by_device) : values(std::move(by_device)) {}
  // A value on one device, given as it is.
  PerDevice(DeviceValue value) { values.push_back(std::move(value)); }  // NOLINT: implicit

  std::vector<DeviceId> devices() const;
  bool has_sparse() const;
  // Of no device is there none or several.
  bool has_one_value_each() const;
  const DeviceValue& at(const DeviceId& device) const;  // which it has (CHECK)
};

// INVALID_ARGUMENT: no value at all; one without a device; two entries for a device; values that
// are not all dense or all sparse, or differ in dtype or shape (sparse: in that of their slices); a
// dtype without arithmetic; sparse values whose indices and slices differ in number.
absl::Status CheckValues(const PerDevice& value);

// The same value on every device, each a copy of its own.
struct Mirrored {
  struct Copy {
    DeviceId device;
    OwnedValue value;
  };
  std::vector<Copy> copies;

  std::vector<DeviceId> devices() const;
  const OwnedValue& at(const DeviceId& device) const;  // which it has (CHECK)
};

// A device, a list of devices, or the devices that a value has.
struct Destinations {
  std::vector<DeviceId> devices;

  Destinations(const DeviceId& device) : devices({device}) {}             // NOLINT: implicit
  Destinations(std::vector<DeviceId> list) : devices(std::move(list)) {}  // NOLINT: implicit
  Destinations(const PerDevice& value) : devices(value.devices()) {}      // NOLINT: implicit
  Destinations(const Mirrored& value) : devices(value.devices()) {}       // NOLINT: implicit
};

// INVALID_ARGUMENT: none ("destinations can not be empty"), or one twice.
absl::Status CheckDestinations(const Destinations& destinations);

bool AreSameSets(std::vector<DeviceId> a, std::vector<DeviceId> b);

}  // namespace lockstep::worker
