#include "ps/service/shared_memory_registry.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/log.h"
#include "common/shm/host.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"

namespace lockstep::ps {
namespace {

constexpr char kSegmentName[] = "lockstep-values";

AttachMemoryReply NotToBeHad(absl::string_view reason) {
  AttachMemoryReply reply;
  reply.set_reason(std::string(reason));
  return reply;
}

}  // namespace

std::optional<ValueMemory> SharedMemoryRegistry::MakeValues(uint64_t bytes) {
  absl::StatusOr<std::shared_ptr<shm::Segment>> segment = shm::Segment::Create(kSegmentName, bytes);
  if (!segment.ok()) {
    log::Info(absl::StrCat("shared memory unavailable, using gRPC: ", segment.status().message()));
    return std::nullopt;
  }
  decltype(attached_) gone;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  gone.swap(attached_);
  values_ = *segment;
  return ValueMemory{(*segment)->bytes(), *segment};
}

AttachMemoryReply SharedMemoryRegistry::Offer(const WorkerIdentity& worker,
                                              const std::string& host) {
  const absl::StatusOr<std::string> own = shm::BootId();
  if (!own.ok()) return NotToBeHad(own.status().message());
  if (host != *own) return NotToBeHad("worker and ps are not on one host");
  absl::MutexLock lock(&mutex_);
  if (values_ == nullptr) return NotToBeHad("the ps's values are not in shared memory");
  if (server_ == nullptr) {
    auto server = shm::FdPassingServer::Start();
    if (!server.ok()) return NotToBeHad(server.status().message());
    server_ = *std::move(server);
  }
  const absl::StatusOr<uint64_t> secret = server_->Offer(
      values_, [this, worker, values = values_](std::shared_ptr<const shm::Segment> gradients) {
        return Attach(worker, {worker.epoch, worker.incarnation, std::move(gradients), values});
      });
  if (!secret.ok()) return NotToBeHad(secret.status().message());
  AttachMemoryReply reply;
  reply.set_socket(server_->socket());
  reply.set_secret(*secret);
  return reply;
}

absl::Status SharedMemoryRegistry::Attach(const WorkerIdentity& worker, Attached attached) {
  Attached old;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  if (attached.values != values_) {
    return absl::AbortedError("the ps has made other variables meanwhile");
  }
  old = std::exchange(attached_[worker.worker], std::move(attached));
  return absl::OkStatus();
}

void SharedMemoryRegistry::KeepOnly(const std::vector<Member>& members) {
  std::vector<Attached> gone;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  for (auto entry = attached_.begin(); entry != attached_.end();) {
    const bool stays = std::any_of(members.begin(), members.end(), [&](const Member& member) {
      return member.worker == entry->first && member.incarnation == entry->second.incarnation;
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
  const auto found = attached_.find(worker.worker);
  if (found == attached_.end()) return nullptr;
  const Attached& attached = found->second;
  const bool is_it = attached.epoch == worker.epoch && attached.incarnation == worker.incarnation;
  return is_it ? &attached : nullptr;
}

bool SharedMemoryRegistry::HasValues(const WorkerIdentity& worker) const {
  absl::MutexLock lock(&mutex_);
  const Attached* const attached = Find(worker);
  return attached != nullptr && attached->values == values_;
}

absl::Status SharedMemoryRegistry::Locate(const PushRequest& request, PushOrder* order) const {
  std::shared_ptr<const shm::Segment> gradients;
  {
    absl::MutexLock lock(&mutex_);
    const Attached* const attached = Find(order->worker);
    if (attached != nullptr) gradients = attached->gradients;
  }
  if (gradients == nullptr) {
    return absl::NotFoundError(absl::StrCat("worker ", order->worker.worker.value(),
                                            " has attached no memory to this ps"));
  }
  const std::span<const std::byte> bytes = gradients->bytes();
  const auto received = std::exchange(order->payload, {});
  order->kept_payload.reset();
  SegmentedReader indices(received);
  for (const lockstep::PushPiece& piece : request.pieces()) {
    const auto wrong = [&piece](const auto&... what) {
      return absl::InvalidArgumentError(
          absl::StrCat("push of variable ", piece.variable(), ": ", what...));
    };
    const std::optional<uint64_t> index_bytes = PackedBytes(piece.rows(), 0);
    if (!index_bytes.has_value() || *index_bytes > piece.size() ||
        (*index_bytes > 0 && piece.offset() != 0)) {
      return wrong("expected a whole sparse gradient in memory, got ", piece.size(),
                   " bytes from offset ", piece.offset(), " of one of ", piece.rows(), " rows");
    }
    if (!indices.Share(*index_bytes, &order->payload)) {
      return wrong("expected a payload with the indices of its ", piece.rows(), " rows");
    }
    const uint64_t size = piece.size() - *index_bytes;
    if (piece.place() > bytes.size() || size > bytes.size() - piece.place()) {
      return wrong("expected a place in the worker's ", bytes.size(), " bytes, got ", size,
                   " bytes at ", piece.place());
    }
    order->in_place.push_back(bytes.subspan(piece.place(), size));
    order->payload.push_back(order->in_place.back());
  }
  if (indices.remaining() > 0) {
    return absl::InvalidArgumentError("a push in memory with a payload beyond its row indices");
  }
  order->memory = std::move(gradients);
  return absl::OkStatus();
}

}  // namespace lockstep::ps
