#include "common/client/failover_transport.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/lost_variables.h"

namespace lockstep {
namespace {

// The other peer may have what this one has not.
bool MayBeElsewhere(const absl::Status& status) {
  return absl::IsUnavailable(status) || LacksVariables(status);
}

}  // namespace

FailoverTransport::FailoverTransport(Connect connect, std::string address,
                                     std::string other_address)
    : connect_(std::move(connect)), places_{std::move(address), std::move(other_address)} {
  absl::MutexLock lock(&mutex_);
  MoveTo(places_.address);
  generation_.store(0);
}

std::shared_ptr<FailoverTransport::Peer> FailoverTransport::current() const {
  absl::MutexLock lock(&mutex_);
  return current_;
}

void FailoverTransport::MoveTo(const std::string& address) {
  if (current_ != nullptr && current_->address == address) return;
  std::shared_ptr<Peer>& peer = peers_[address];
  if (peer == nullptr) {
    peer = std::shared_ptr<Peer>(new Peer{.address = address, .transport = connect_(address)});
    if (is_cancelled_) peer->transport->Cancel();
  }
  if (current_ != nullptr) may_round_ = may_round_ && current_->transport->MayRound();
  current_ = peer;
  generation_.fetch_add(1);
}

bool FailoverTransport::MayRound() const {
  absl::MutexLock lock(&mutex_);
  return may_round_ && current_->transport->MayRound();
}

void FailoverTransport::Leave(uint64_t generation) {
  {
    absl::MutexLock lock(&mutex_);
    if (places_.other.empty() || generation != generation_.load()) return;
    MoveTo(current_->address == places_.address ? places_.other : places_.address);
  }
  OpenAgain();
  TellMoved();
}

void FailoverTransport::SetPlaces(const std::string& address, const std::string& other_address) {
  const uint64_t generation = generation_.load();
  std::vector<std::shared_ptr<Peer>> left;   // now
  std::vector<std::shared_ptr<Peer>> ended;  // left before
  {
    absl::MutexLock lock(&mutex_);
    Places places{address, other_address};
    if (places == places_) return;
    places_ = std::move(places);
    for (auto peer = left_.begin(); peer != left_.end();) {
      if ((*peer)->in_flight.load() > 0) {
        ++peer;
        continue;
      }
      ended.push_back(std::move(*peer));
      peer = left_.erase(peer);
    }
    MoveTo(address);
    for (auto peer = peers_.begin(); peer != peers_.end();) {
      if (peer->second == current_) {
        ++peer;
        continue;
      }
      left.push_back(peer->second);
      peer = peers_.erase(peer);
    }
    left_.insert(left_.end(), left.begin(), left.end());
  }
  for (const auto& peer : left) peer->transport->Cancel();
  if (generation_.load() == generation) return;
  OpenAgain();
  TellMoved();
}

void FailoverTransport::NotifyOfMoves(std::weak_ptr<const std::function<void()>> on_move) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(on_moves_, [](const auto& other) { return other.expired(); });
  on_moves_.push_back(std::move(on_move));
}

void FailoverTransport::TellMoved() {
  std::vector<std::weak_ptr<const std::function<void()>>> on_moves;
  {
    absl::MutexLock lock(&mutex_);
    on_moves = on_moves_;
  }
  for (const auto& on_move : on_moves) {
    if (const auto held = on_move.lock()) (*held)();
  }
}

void FailoverTransport::OpenAgain() {
  std::optional<WorkerIdentity> worker;
  {
    absl::MutexLock lock(&mutex_);
    worker = worker_;
  }
  if (worker.has_value()) Open(*worker, [](const absl::StatusOr<TransportInfo>&) {});
}

void FailoverTransport::Open(const WorkerIdentity& worker, Callback<TransportInfo> done) {
  Peer* to = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    worker_ = worker;
    to = current_.get();
    to->in_flight.fetch_add(1);
  }
  to->transport->Open(worker,
                      [to, done = std::move(done)](absl::StatusOr<TransportInfo> info) mutable {
                        // A copy shares memory only once it serves.
                        to->needs_open.store(!info.ok());
                        to->in_flight.fetch_sub(1);
                        done(std::move(info));
                      });
}

void FailoverTransport::Cancel() {
  std::vector<std::shared_ptr<Peer>> peers;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    for (const auto& [address, peer] : peers_) peers.push_back(peer);
  }
  for (const auto& peer : peers) peer->transport->Cancel();
}

void FailoverTransport::Start(const CallOptions& options, google::protobuf::Message* header,
                              const std::vector<OutgoingTensor>& tensors,
                              google::protobuf::Message* reply, Callback<ReceivedTensors> done) {
  Peer* to = nullptr;
  uint64_t generation = 0;
  {
    absl::MutexLock lock(&mutex_);
    to = current_.get();
    to->in_flight.fetch_add(1);
    generation = generation_.load();
  }
  if (to->needs_open.load() && to->needs_open.exchange(false)) OpenAgain();
  to->transport->Start(options, header, tensors, reply,
                       [this, to, generation,
                        done = std::move(done)](absl::StatusOr<ReceivedTensors> received) mutable {
                         received = Judge(generation, *to->transport, std::move(received));
                         to->in_flight.fetch_sub(1);
                         done(std::move(received));
                       });
}

absl::StatusOr<ReceivedTensors> FailoverTransport::Judge(uint64_t generation,
                                                         const TensorTransport& from,
                                                         absl::StatusOr<ReceivedTensors> received) {
  bool is_cancelled = false;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled = is_cancelled_;
  }
  if (is_cancelled) return received;
  const bool may_be_elsewhere = !received.ok() && MayBeElsewhere(received.status());
  if (may_be_elsewhere) Leave(generation);
  if (!may_be_elsewhere && generation == generation_.load()) return received;
  const std::string why = received.ok() ? "" : absl::StrCat(": ", received.status().message());
  return absl::UnavailableError(absl::StrCat(from.peer(), " does not serve the shard now", why));
}

}  // namespace lockstep
