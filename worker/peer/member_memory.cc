#include "worker/peer/member_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/shm/host.h"

namespace lockstep::worker {
namespace {

AttachMemoryReply Unavailable(absl::string_view reason) {
  AttachMemoryReply reply;
  reply.set_reason(std::string(reason));
  return reply;
}

}  // namespace

AttachMemoryReply MemberMemory::Offer(int position, const std::string& host) {
  if (own_ == nullptr) return Unavailable("the other worker shares no memory");
  const absl::StatusOr<std::string> own_host = shm::BootId();
  if (!own_host.ok()) return Unavailable(own_host.status().message());
  if (host != *own_host) return Unavailable("the workers are not on one host");
  absl::MutexLock lock(&mutex_);
  if (server_ == nullptr) {
    auto server = shm::FdPassingServer::Start();
    if (!server.ok()) return Unavailable(server.status().message());
    server_ = *std::move(server);
  }
  const absl::StatusOr<uint64_t> secret = server_->Offer(own_, [this, position](Memory theirs) {
    absl::MutexLock lock(&mutex_);
    std::swap(attached_[position], theirs);  // messages keep what they name
    return absl::OkStatus();
  });
  if (!secret.ok()) return Unavailable(secret.status().message());
  AttachMemoryReply reply;
  reply.set_socket(server_->socket());
  reply.set_secret(*secret);
  return reply;
}

absl::StatusOr<MemberMemory::Elements> MemberMemory::Find(int position, uint64_t place,
                                                          uint64_t size) const {
  Memory memory;
  {
    absl::MutexLock lock(&mutex_);
    memory = attached_[position];
  }
  if (memory == nullptr) return absl::NotFoundError("the sender has attached no memory");
  const std::span<const std::byte> bytes = memory->bytes();
  if (place > bytes.size() || size > bytes.size() - place) {
    return absl::InvalidArgumentError(absl::StrCat("expected a place in the sender's ",
                                                   bytes.size(), " bytes, got ", size, " bytes at ",
                                                   place));
  }
  return Elements{bytes.subspan(place, size), std::move(memory)};
}

}  // namespace lockstep::worker
