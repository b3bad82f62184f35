#include "worker/strategy/replicated/replica_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/strategy/replicated/replica_state.h"

namespace lockstep::worker {

void ReplicaServer::Serve(const Replicas* replicas) {
  absl::MutexLock lock(&mutex_);
  replicas_ = replicas;
}

void ReplicaServer::Change(absl::FunctionRef<void()> apply) {
  {
    absl::MutexLock lock(&mutex_);
    is_changing_ = true;
  }
  apply();
  absl::MutexLock lock(&mutex_);
  is_changing_ = false;
}

absl::StatusOr<StatePiece> ReplicaServer::Read(GlobalStep version, uint64_t offset, uint64_t size) {
  absl::MutexLock lock(&mutex_);
  if (is_changing_) return absl::UnavailableError("this worker makes its next version");
  if (replicas_ == nullptr) return absl::UnavailableError("this worker has no variables yet");
  if (replicas_->version() != version) {
    return absl::UnavailableError(absl::StrCat(
        "this worker has version ", replicas_->version().value(), ", not ", version.value()));
  }
  const std::vector<TensorView> tensors = replicas_->StateOfTower0();
  return StatePiece{.total = NumBytes(tensors),
                    .scalars = {replicas_->scalars().begin(), replicas_->scalars().end()},
                    .bytes = ReadBytes(tensors, offset, size)};
}

}  // namespace lockstep::worker
