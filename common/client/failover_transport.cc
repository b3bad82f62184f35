#include "common/client/failover_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/lost_variables.h"

namespace lockstep {
namespace {

// The other peer may have what this one has not.
bool MayBeElsewhere(const absl::Status& status) {
  return absl::IsUnavailable(status) || HasLostVariables(status) || IsNoVariables(status);
}

}  // namespace

FailoverTransport::FailoverTransport(Connect connect)
    : connect_(std::move(connect)), primary_(connect_(kPrimary)) {}

TensorTransport* FailoverTransport::current() const {
  absl::MutexLock lock(&mutex_);
  return current_ == kPrimary ? primary_.get() : copy_.get();
}

void FailoverTransport::MoveTo(Peer peer) {
  if (current_ == peer) return;
  current_ = peer;
  if (copy_ == nullptr) copy_ = connect_(kCopy);
  if (is_cancelled_) copy_->Cancel();
  generation_.fetch_add(1);
}

void FailoverTransport::Leave(uint64_t generation) {
  {
    absl::MutexLock lock(&mutex_);
    if (stays_ || generation != generation_.load()) return;
    MoveTo(current_ == kPrimary ? kCopy : kPrimary);
  }
  OpenAgain();
}

void FailoverTransport::StayAtCopy() {
  const uint64_t generation = generation_.load();
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(stays_, true)) return;
    MoveTo(kCopy);
  }
  primary_->Cancel();
  if (generation_.load() != generation) OpenAgain();
}

void FailoverTransport::OpenAgain() {
  std::optional<WorkerIdentity> worker;
  {
    absl::MutexLock lock(&mutex_);
    worker = worker_;
  }
  if (worker.has_value()) current()->Open(*worker, [](const absl::StatusOr<TransportInfo>&) {});
}

void FailoverTransport::Open(const WorkerIdentity& worker, Callback<TransportInfo> done) {
  {
    absl::MutexLock lock(&mutex_);
    worker_ = worker;
  }
  current()->Open(worker, std::move(done));
}

void FailoverTransport::Cancel() {
  TensorTransport* copy = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    copy = copy_.get();
  }
  primary_->Cancel();
  if (copy != nullptr) copy->Cancel();
}

void FailoverTransport::Start(const CallOptions& options, google::protobuf::Message* header,
                              const std::vector<OutgoingTensor>& tensors,
                              google::protobuf::Message* reply, Callback<ReceivedTensors> done) {
  TensorTransport* to = nullptr;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    to = current_ == kPrimary ? primary_.get() : copy_.get();
    generation = generation_.load();
  }
  to->Start(options, header, tensors, reply,
            [this, to, generation,
             done = std::move(done)](absl::StatusOr<ReceivedTensors> received) mutable {
              bool is_cancelled = false;
              {
                absl::MutexLock lock(&mutex_);
                is_cancelled = is_cancelled_;
              }
              if (is_cancelled) return done(std::move(received));
              if (!received.ok() && MayBeElsewhere(received.status())) Leave(generation);
              if (generation == generation_.load()) return done(std::move(received));
              const std::string why =
                  received.ok() ? "" : absl::StrCat(": ", received.status().message());
              done(absl::UnavailableError(
                  absl::StrCat(to->peer(), " does not serve the shard now", why)));
            });
}

}  // namespace lockstep
