#include "common/transport/grpc_shm/shared_memory_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/shm/host.h"

namespace lockstep {
namespace {

constexpr char kSegmentName[] = "lockstep-values";

AttachMemoryReply Unavailable(absl::string_view reason) {
  AttachMemoryReply reply;
  reply.set_reason(std::string(reason));
  return reply;
}

}  // namespace

std::optional<LentMemory> SharedMemoryRegistry::MakeValues(uint64_t bytes) {
  absl::StatusOr<std::shared_ptr<shm::Segment>> segment = shm::Segment::Create(kSegmentName, bytes);
  if (!segment.ok()) {
    log::Info(absl::StrCat("shared memory unavailable, using gRPC: ", segment.status().message()));
    return std::nullopt;
  }
  decltype(attached_) gone;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  gone.swap(attached_);
  values_ = *segment;
  return LentMemory{(*segment)->bytes(), *segment};
}

AttachMemoryReply SharedMemoryRegistry::Offer(const WorkerIdentity& worker,
                                              const std::string& host) {
  const absl::StatusOr<std::string> own = shm::BootId();
  if (!own.ok()) return Unavailable(own.status().message());
  if (host != *own) return Unavailable("worker and ps are not on one host");
  absl::MutexLock lock(&mutex_);
  const Memory values = values_.lock();
  if (values == nullptr) return Unavailable("the ps's values are not in shared memory");
  if (server_ == nullptr) {
    auto server = shm::FdPassingServer::Start();
    if (!server.ok()) return Unavailable(server.status().message());
    server_ = *std::move(server);
  }
  const absl::StatusOr<uint64_t> secret =
      server_->Offer(values, [this, worker, seen = std::weak_ptr(values)](Memory gradients) {
        return Attach(worker.worker(),
                      {worker.epoch(), worker.incarnation(), std::move(gradients), seen});
      });
  if (!secret.ok()) return Unavailable(secret.status().message());
  AttachMemoryReply reply;
  reply.set_socket(server_->socket());
  reply.set_secret(*secret);
  return reply;
}

absl::Status SharedMemoryRegistry::Attach(uint32_t worker, Attached attached) {
  Attached old;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  const Memory values = values_.lock();
  if (values == nullptr || attached.values.lock() != values) {
    return absl::AbortedError("the ps has made other variables meanwhile");
  }
  old = std::exchange(attached_[worker], std::move(attached));
  return absl::OkStatus();
}

void SharedMemoryRegistry::KeepOnly(const google::protobuf::RepeatedPtrField<Member>& members) {
  std::vector<Attached> gone;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  for (auto entry = attached_.begin(); entry != attached_.end();) {
    const bool stays = std::any_of(members.begin(), members.end(), [&](const Member& member) {
      return member.worker() == entry->first && member.incarnation() == entry->second.incarnation;
    });
    if (stays) {
      ++entry;
    } else {
      gone.push_back(std::move(entry->second));
      attached_.erase(entry++);
    }
  }
}

const SharedMemoryRegistry::Attached* SharedMemoryRegistry::Find(
    const WorkerIdentity& worker) const {
  const auto found = attached_.find(worker.worker());
  if (found == attached_.end()) return nullptr;
  const Attached& attached = found->second;
  const bool is_it =
      attached.epoch == worker.epoch() && attached.incarnation == worker.incarnation();
  return is_it ? &attached : nullptr;
}

SharedMemoryRegistry::Memory SharedMemoryRegistry::ValuesSeenBy(
    const WorkerIdentity& worker) const {
  absl::MutexLock lock(&mutex_);
  const Attached* const attached = Find(worker);
  Memory values = values_.lock();
  return attached != nullptr && attached->values.lock() == values ? std::move(values) : nullptr;
}

absl::StatusOr<SharedMemoryRegistry::Memory> SharedMemoryRegistry::GradientsOf(
    const WorkerIdentity& worker) const {
  {
    absl::MutexLock lock(&mutex_);
    const Attached* const attached = Find(worker);
    if (attached != nullptr && attached->gradients != nullptr) return attached->gradients;
  }
  return absl::NotFoundError(
      absl::StrCat("worker ", worker.worker(), " has attached no memory to this ps"));
}

}  // namespace lockstep
