#include "worker/ops/cuda/cudnn/backend_descriptor.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::worker::cuda {

BackendDescriptor::BackendDescriptor(const CudnnLibrary* library, int type) : library_(library) {
  CudnnDescriptor descriptor = nullptr;
  status_ = library->ToStatus((*library)->CreateDescriptor(type, &descriptor),
                              absl::StrCat("cudnnBackendCreateDescriptor of type ", type));
  if (!status_.ok()) return;
  descriptor_ = std::shared_ptr<void>(
      descriptor, [library](void* unused) { (*library)->DestroyDescriptor(unused); });
}

void BackendDescriptor::SetValues(int attribute, int type, int64_t count, const void* values) {
  if (!status_.ok()) return;
  status_ = library_->ToStatus(
      (*library_)->SetAttribute(descriptor_.get(), attribute, type, count, values),
      absl::StrCat("cudnnBackendSetAttribute of ", attribute));
}

void BackendDescriptor::Set(int attribute, std::span<const int64_t> values) {
  SetValues(attribute, kTypeInt64, static_cast<int64_t>(values.size()), values.data());
}

void BackendDescriptor::Set(int attribute, float value) {
  SetValues(attribute, kTypeFloat, 1, &value);
}

void BackendDescriptor::Set(int attribute, const std::string& text) {
  SetValues(attribute, kTypeChar, static_cast<int64_t>(text.size() + 1), text.c_str());
}

void BackendDescriptor::Set(int attribute, const BackendDescriptor& value) {
  if (status_.ok()) status_ = value.status_;
  const CudnnDescriptor descriptor = value.descriptor_.get();
  SetValues(attribute, kTypeDescriptor, 1, &descriptor);
  attributes_.push_back(value.descriptor_);
  attributes_.insert(attributes_.end(), value.attributes_.begin(), value.attributes_.end());
}

void BackendDescriptor::Set(int attribute, CudnnContext* handle) {
  SetValues(attribute, kTypeHandle, 1, &handle);
}

void BackendDescriptor::Set(int attribute, std::span<void* const> pointers) {
  SetValues(attribute, kTypePointer, static_cast<int64_t>(pointers.size()), pointers.data());
}

void BackendDescriptor::SetEnum(int attribute, int type, int value) {
  SetValues(attribute, type, 1, &value);
}

absl::Status BackendDescriptor::Finalize() {
  if (status_.ok()) {
    status_ = library_->ToStatus((*library_)->Finalize(descriptor_.get()), "cudnnBackendFinalize");
  }
  return status_;
}

absl::Status BackendDescriptor::GetValues(int attribute, int type, int64_t room, int64_t* count,
                                          void* values) const {
  LOCKSTEP_RETURN_IF_ERROR(status_);
  return library_->ToStatus(
      (*library_)->GetAttribute(descriptor_.get(), attribute, type, room, count, values),
      absl::StrCat("cudnnBackendGetAttribute of ", attribute));
}

absl::StatusOr<int64_t> BackendDescriptor::GetInt64(int attribute) const {
  int64_t count = 0;
  int64_t value = 0;
  LOCKSTEP_RETURN_IF_ERROR(GetValues(attribute, kTypeInt64, 1, &count, &value));
  return value;
}

absl::StatusOr<std::vector<int>> BackendDescriptor::GetEnums(int attribute, int type) const {
  constexpr size_t kMost = 32;  // more than any enumeration that is asked for has
  std::vector<int> values(kMost);
  int64_t count = 0;
  LOCKSTEP_RETURN_IF_ERROR(GetValues(attribute, type, kMost, &count, values.data()));
  values.resize(static_cast<size_t>(count));
  return values;
}

absl::StatusOr<std::vector<BackendDescriptor>> BackendDescriptor::GetDescriptors(
    int attribute, int descriptor_type) const {
  int64_t count = 0;
  LOCKSTEP_RETURN_IF_ERROR(GetValues(attribute, kTypeDescriptor, 0, &count, nullptr));
  std::vector<BackendDescriptor> values;
  std::vector<CudnnDescriptor> descriptors;
  for (int64_t i = 0; i < count; ++i) {
    values.emplace_back(library_, descriptor_type);
    LOCKSTEP_RETURN_IF_ERROR(values.back().status_);
    descriptors.push_back(values.back().descriptor_.get());
  }
  // cuDNN fills the descriptors that exist.
  LOCKSTEP_RETURN_IF_ERROR(
      GetValues(attribute, kTypeDescriptor, count, &count, descriptors.data()));
  values.erase(values.begin() + count, values.end());
  return values;
}

}  // namespace lockstep::worker::cuda
