#include "common/client/shared_memory_connection.h"

#include <utility>

#include "common/shm/fd_passing_client.h"
#include "common/shm/host.h"

namespace lockstep {
namespace {

constexpr absl::Duration kSharePatience = absl::Seconds(2);

std::shared_ptr<const shm::Segment> SegmentOf(const SharedMemoryOptions& options) {
  return options.gradients == nullptr ? nullptr : options.gradients->segment();
}

// The ps may be ready for it later, or the caller has gone.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsDeadlineExceeded(error) ||
         absl::IsFailedPrecondition(error) || absl::IsAborted(error) || absl::IsCancelled(error);
}

}  // namespace

SharedMemoryConnection::SharedMemoryConnection(SharedMemoryOptions options)
    : options_(std::move(options)),
      gradients_(SegmentOf(options_)),
      state_(options_.gradients == nullptr ? State::kRefused : State::kIdle) {}

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
    Settle(host.status(), nullptr);
    return std::nullopt;
  }
  AttachMemoryRequest request;
  *request.mutable_worker() = worker;
  request.set_host(*host);
  return request;
}

void SharedMemoryConnection::Complete(const absl::StatusOr<AttachMemoryReply>& reply) {
  if (!reply.ok() && MayPass(reply.status())) {
    Waiting waiting;
    {
      absl::MutexLock lock(&mutex_);
      state_ = State::kIdle;
      waiting.swap(waiting_);
    }
    return Answer(waiting, absl::UnavailableError(reply.status().message()));
  }
  if (!reply.ok()) return Settle(reply.status(), nullptr);
  if (reply->socket().empty()) return Settle(absl::UnavailableError(reply->reason()), nullptr);
  // The last one has ended: its outcome is what Begin asked again for.
  if (exchange_.joinable()) exchange_.join();
  exchange_ = std::thread([this, place = *reply] { Exchange(place); });
}

void SharedMemoryConnection::Exchange(const AttachMemoryReply& place) {
  auto values = shm::ShareMemory(place.socket(), place.secret(), gradients_.get(), kSharePatience);
  if (!values.ok()) return Settle(values.status(), nullptr);
  if (*values == nullptr) return Settle(absl::InternalError("the ps gave no memory"), nullptr);
  Settle(absl::OkStatus(), *std::move(values));
}

void SharedMemoryConnection::Settle(const absl::Status& status,
                                    std::shared_ptr<const shm::Segment> values) {
  Waiting waiting;
  bool has_told = false;
  {
    absl::MutexLock lock(&mutex_);
    state_ = status.ok() ? State::kAttached : State::kRefused;
    was_attached_ = was_attached_ || status.ok();
    values_ = std::move(values);
    has_told = std::exchange(has_told_, true);
    waiting.swap(waiting_);
  }
  if (!has_told && options_.told) options_.told(status);
  Answer(waiting, status.ok());
}

void SharedMemoryConnection::Answer(const Waiting& waiting, const absl::StatusOr<bool>& answer) {
  for (const auto& done : waiting) done(answer);
}

void SharedMemoryConnection::Await(std::function<void(absl::StatusOr<bool>)> done) {
  absl::StatusOr<bool> answer;
  {
    absl::MutexLock lock(&mutex_);
    switch (state_) {
      case State::kAsked:
        waiting_.push_back(std::move(done));
        return;
      case State::kIdle:
        answer = absl::UnavailableError("the ps could not be asked for its memory");
        break;
      case State::kAttached:
      case State::kRefused:
        answer = was_attached_;
        break;
    }
  }
  done(std::move(answer));
}

bool SharedMemoryConnection::was_attached() const {
  absl::MutexLock lock(&mutex_);
  return was_attached_;
}

void SharedMemoryConnection::Lose() {
  std::shared_ptr<const shm::Segment> values;  // unmapped without the lock
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kAttached) return;
  state_ = State::kIdle;
  values = std::move(values_);
}

std::optional<uint64_t> SharedMemoryConnection::PlaceOf(std::span<const std::byte> bytes) const {
  if (gradients_ == nullptr || bytes.empty()) return std::nullopt;
  const std::span<const std::byte> memory = gradients_->bytes();
  const uint64_t place =
      reinterpret_cast<uintptr_t>(bytes.data()) - reinterpret_cast<uintptr_t>(memory.data());
  if (place >= memory.size() || bytes.size() > memory.size() - place) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  if (state_ != State::kAttached) return std::nullopt;
  return place;
}

std::shared_ptr<const shm::Segment> SharedMemoryConnection::values() const {
  absl::MutexLock lock(&mutex_);
  return values_;
}

}  // namespace lockstep
