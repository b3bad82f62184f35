// An object of cuDNN's graph interface: attributes are set, then it is finalized, then it can be
// read and be an attribute of others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/ops/cuda/cudnn/cudnn_library.h"

namespace lockstep::worker::cuda {

// Copies are the same object, which lives as long as one of them or one that it is an attribute of.
// Used by one thread at a time.
class BackendDescriptor {
 public:
  // `type`: kTensorDescriptor, ... `library` outlives it.
  BackendDescriptor(const CudnnLibrary* library, int type);

  // The first error is Finalize's.
  void Set(int attribute, int64_t value) { Set(attribute, std::span(&value, 1)); }
  void Set(int attribute, std::span<const int64_t> values);
  void Set(int attribute, float value);
  void Set(int attribute, const std::string& text);
  void Set(int attribute, const BackendDescriptor& value);
  void Set(int attribute, CudnnContext* handle);
  void Set(int attribute, std::span<void* const> pointers);
  // Of an enumeration: kTypeDataType, ...
  void SetEnum(int attribute, int type, int value);
  absl::Status Finalize();
  // For calls of cuDNN, of a finalized one.
  CudnnDescriptor get() const { return descriptor_.get(); }

  // Of a finalized one.
  absl::StatusOr<int64_t> GetInt64(int attribute) const;
  absl::StatusOr<std::vector<int>> GetEnums(int attribute, int type) const;
  // `descriptor_type`: of the values.
  absl::StatusOr<std::vector<BackendDescriptor>> GetDescriptors(int attribute,
                                                                int descriptor_type) const;

 private:
  void SetValues(int attribute, int type, int64_t count, const void* values);
  absl::Status GetValues(int attribute, int type, int64_t room, int64_t* count, void* values) const;

  const CudnnLibrary* library_;
  absl::Status status_;
  std::shared_ptr<void> descriptor_;  // null: not created
  std::vector<std::shared_ptr<void>> attributes_;
};

}  // namespace lockstep::worker::cuda
