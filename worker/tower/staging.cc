#include "worker/tower/staging.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

int Staging::AddPlace(size_t most_bytes, Kind kind) {
  const bool shared = kind == kShared && device_->is_host();
  places_.push_back({total_, most_bytes, shared});
  if (!shared) total_ += Tensor::RoomFor(most_bytes);
  return static_cast<int>(places_.size()) - 1;
}

absl::Status Staging::Allocate() {
  if (total_ == 0) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(memory_, device_->Allocate(total_));
  return absl::OkStatus();
}

absl::StatusOr<void*> Staging::AddressOf(int place, void* host, size_t bytes) const {
  const Place& at = places_[place];
  if (at.shared) return host;
  if (bytes <= at.most_bytes) return memory_.get() + at.offset;
  return absl::InternalError(
      absl::StrCat("a tensor has ", bytes, " bytes, planned are at most ", at.most_bytes));
}

absl::StatusOr<TensorView> Staging::ToDevice(int place, const TensorView& host, Stream* stream) {
  LOCKSTEP_ASSIGN_OR_RETURN(void* const to,
                            AddressOf(place, const_cast<void*>(host.data), host.num_bytes()));
  if (to != host.data) stream->CopyToDevice(to, host.data, host.num_bytes());
  return TensorView{host.dtype, host.shape, to};
}

absl::StatusOr<TensorView> Staging::CopyOnDevice(int place, const TensorView& rows,
                                                 Stream* stream) {
  LOCKSTEP_CHECK(!device_->is_host());
  LOCKSTEP_ASSIGN_OR_RETURN(void* const to, AddressOf(place, nullptr, rows.num_bytes()));
  stream->CopyOnDevice(to, rows.data, rows.num_bytes());
  return TensorView{rows.dtype, rows.shape, to};
}

absl::StatusOr<MutableTensorView> Staging::OnDevice(int place,
                                                    const MutableTensorView& host) const {
  LOCKSTEP_ASSIGN_OR_RETURN(void* const data, AddressOf(place, host.data, host.num_bytes()));
  return MutableTensorView{host.dtype, host.shape, data};
}

void Staging::CopyToHost(const TensorView& device, const MutableTensorView& host, Stream* stream) {
  if (device.data != host.data) stream->CopyToHost(host.data, device.data, host.num_bytes());
}

}  // namespace lockstep::worker
