#include "common/transport/grpc_shm/shared_memory_connection.h"

#include <utility>

#include "common/shm/fd_passing_client.h"
#include "common/shm/host.h"

namespace lockstep {
namespace {

// In a row, before the memory is done without.
constexpr int kMostTimeOuts = 5;

// The ps may be ready for it later, or the caller has gone.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
         absl::IsFailedPrecondition(error) || absl::IsAborted(error) || absl::IsCancelled(error);
}

}  // namespace

SharedMemoryConnection::SharedMemoryConnection(Memory gradients, StatusCallback opened, Adopt adopt,
                                               absl::Duration patience)
    : gradients_(std::move(gradients)),
      adopt_(std::move(adopt)),
      patience_(patience),
      references_(absl::UnavailableError("no memory has been exchanged")),
      opened_(std::move(opened)) {}

SharedMemoryConnection::~SharedMemoryConnection() {
  if (exchange_.joinable()) exchange_.join();
}

std::optional<AttachMemoryRequest> SharedMemoryConnection::Begin(const WorkerIdentity& worker) {
  {
    absl::MutexLock lock(&mutex_);
    if (state_ != State::kIdle) return std::nullopt;
    state_ = State::kAsked;
  }
  const absl::StatusOr<std::string> host = shm::BootId();
  if (!host.ok()) {
    OnExchanged(host.status(), nullptr);
    return std::nullopt;
  }
  AttachMemoryRequest request;
  *request.mutable_worker() = worker;
  request.set_host(*host);
  return request;
}

void SharedMemoryConnection::Complete(const absl::StatusOr<AttachMemoryReply>& reply) {
  if (!reply.ok() && MayPass(reply.status())) return PutOff(reply.status());
  if (!reply.ok()) return OnExchanged(reply.status(), nullptr);
  if (reply->socket().empty()) return OnExchanged(absl::UnavailableError(reply->reason()), nullptr);
  // The last one has ended: its outcome is what Begin asked again for.
  if (exchange_.joinable()) exchange_.join();
  exchange_ = std::thread([this, offer = *reply] { Exchange(offer); });
}

void SharedMemoryConnection::Exchange(const AttachMemoryReply& offer) {
  auto values = shm::ShareMemory(offer.socket(), offer.secret(), gradients_.get(), patience_);
  // It may stand still, or map the memory of others first. Where its own mapping takes longer than
  // we wait, no exchange will ever be in time.
  const bool is_late = absl::IsDeadlineExceeded(values.status());
  time_outs_ = is_late ? time_outs_ + 1 : 0;
  if (is_late && time_outs_ < kMostTimeOuts) return PutOff(values.status());
  if (!values.ok()) return OnExchanged(values.status(), nullptr);
  if (*values == nullptr)
    return OnExchanged(absl::InternalError("the peer gave no memory"), nullptr);
  OnExchanged(absl::OkStatus(),
              adopt_ != nullptr ? adopt_(*std::move(values)) : *std::move(values));
}

void SharedMemoryConnection::PutOff(const absl::Status& why) {
  Waiting waiting;
  {
    absl::MutexLock lock(&mutex_);
    state_ = State::kIdle;
    waiting.swap(waiting_);
  }
  Answer(std::move(waiting), absl::UnavailableError(why.message()));
}

void SharedMemoryConnection::OnExchanged(const absl::Status& status, Memory values) {
  Waiting waiting;
  TransportInfo info;
  StatusCallback opened;
  {
    absl::MutexLock lock(&mutex_);
    state_ = status.ok() ? State::kAttached : State::kRefused;
    is_attached_ = status.ok();
    if (!references_.ok()) references_ = status;
    info.references = references_;
    values_ = std::move(values);
    waiting.swap(waiting_);
    opened.swap(opened_);
  }
  if (opened) opened(info.references);
  Answer(std::move(waiting), info);
}

void SharedMemoryConnection::Answer(Waiting waiting, const absl::StatusOr<TransportInfo>& answer) {
  for (Callback<TransportInfo>& done : waiting) done(answer);
}

void SharedMemoryConnection::Await(Callback<TransportInfo> done) {
  absl::StatusOr<TransportInfo> answer;
  {
    absl::MutexLock lock(&mutex_);
    switch (state_) {
      case State::kAsked:
        waiting_.push_back(std::move(done));
        return;
      case State::kIdle:
        answer = absl::UnavailableError("the peer could not be asked for its memory");
        break;
      case State::kAttached:
      case State::kRefused:
        answer = TransportInfo{references_};
        break;
    }
  }
  done(std::move(answer));
}

bool SharedMemoryConnection::HasExchanged() const {
  absl::MutexLock lock(&mutex_);
  return references_.ok();
}

void SharedMemoryConnection::MarkLost() {
  Memory values;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kAttached) return;
  state_ = State::kIdle;
  is_attached_ = false;
  values = std::move(values_);
}

std::optional<uint64_t> SharedMemoryConnection::PlaceOf(std::span<const std::byte> bytes) const {
  if (gradients_ == nullptr || bytes.empty()) return std::nullopt;
  const std::span<const std::byte> memory = gradients_->bytes();
  const uint64_t place =
      reinterpret_cast<uintptr_t>(bytes.data()) - reinterpret_cast<uintptr_t>(memory.data());
  if (place >= memory.size() || bytes.size() > memory.size() - place) return std::nullopt;
  return is_attached_ ? std::optional(place) : std::nullopt;
}

SharedMemoryConnection::Memory SharedMemoryConnection::values() const {
  absl::MutexLock lock(&mutex_);
  return values_;
}

}  // namespace lockstep
