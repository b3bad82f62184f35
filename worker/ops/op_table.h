// The ops that a kind of device has: one function per kind of op, found by the type of its options.
// A tower is given the table of its device.
#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/device/device.h"
#include "worker/ops/custom.h"
#include "worker/ops/op.h"

namespace lockstep::worker {

// What the ops of one tower share, such as handles of libraries and scratch memory. Everything made
// in one context runs on one stream.
class OpContext {
 public:
  virtual ~OpContext() = default;
};

// Filled by its backend, then const and thread-safe.
class OpTable {
 public:
  template <typename Made>
  using MadeOr = absl::StatusOr<std::unique_ptr<Made>>;
  using ContextFunction = MadeOr<OpContext> (*)(Device* device);
  template <typename Options>
  using OpFunction = MadeOr<typename Options::Made> (*)(OpContext* context, const Options& options);

  explicit OpTable(ContextFunction create_context) : create_context_(create_context) {}

  // The same ops in contexts of another function, and what is between those that have it of this
  // type.
  OpTable WithContext(ContextFunction create_context, DType activations = DType::kFloat32) const {
    OpTable table = *this;
    table.create_context_ = create_context;
    table.activations_ = activations;
    return table;
  }
  // The type of values between layers, and of their gradients, where the ops of the layers have it.
  DType activations() const { return activations_; }

  template <typename Options>
  void Add(OpFunction<Options> make) {
    functions_[typeid(Options)] = reinterpret_cast<Function>(make);
  }
  // For LayerDef.custom of this type.
  void AddCustom(std::string type, OpFunction<CustomOptions> make) {
    custom_[std::move(type)] = make;
  }

  template <typename Options>
  bool Has() const {
    return functions_.contains(typeid(Options));
  }
  bool HasCustom(const std::string& type) const { return custom_.contains(type); }

  // The device outlives the context, and the context what is made in it. The device is current.
  MadeOr<OpContext> CreateContext(Device* device) const { return create_context_(device); }

  // UNIMPLEMENTED where the device has no such op; RESOURCE_EXHAUSTED or INTERNAL when the library
  // behind it fails.
  template <typename Options>
  MadeOr<typename Options::Made> Make(OpContext* context, const Options& options) const {
    const auto found = functions_.find(typeid(Options));
    if (found == functions_.end()) return Missing(Options::kKind);
    return reinterpret_cast<OpFunction<Options>>(found->second)(context, options);
  }
  MadeOr<Op> Make(OpContext* context, const CustomOptions& options) const {
    const auto found = custom_.find(options.kind.type());
    if (found == custom_.end()) return Missing(options.kind.type());
    return found->second(context, options);
  }

 private:
  using Function = void (*)();  // an OpFunction

  static absl::Status Missing(absl::string_view kind) {
    return absl::UnimplementedError(absl::StrCat("this device has no op \"", kind, "\""));
  }

  ContextFunction create_context_;
  DType activations_ = DType::kFloat32;
  absl::flat_hash_map<std::type_index, Function> functions_;
  absl::flat_hash_map<std::string, OpFunction<CustomOptions>> custom_;
};

}  // namespace lockstep::worker
