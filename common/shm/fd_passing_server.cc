#include "common/shm/fd_passing_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/shm/packet.h"

namespace lockstep::shm {
namespace {

// More peers than that wait in the socket's queue.
constexpr size_t kMaxPeers = 256;
// So do peers for whom there is no descriptor: the socket stays readable.
constexpr int kNoDescriptorPauseMs = 100;
constexpr int kOfferLives = 10;  // times the patience with a peer

absl::StatusOr<uint64_t> Random() {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) {
    return absl::InternalError(absl::StrCat("getrandom: ", std::strerror(errno)));
  }
  return number;
}

}  // namespace

absl::StatusOr<std::unique_ptr<FdPassingServer>> FdPassingServer::Start(absl::Duration patience,
                                                                        const Clock* clock) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t number, Random());
  std::string name = absl::StrCat("lockstep-", absl::Hex(number, absl::kZeroPad16));
  LOCKSTEP_ASSIGN_OR_RETURN(FileDescriptor listener, PacketSocket());
  LOCKSTEP_RETURN_IF_ERROR(BindTo(listener, name));
  FileDescriptor stop(eventfd(0, EFD_CLOEXEC));
  if (!stop.valid()) return absl::InternalError(absl::StrCat("eventfd: ", std::strerror(errno)));
  return std::unique_ptr<FdPassingServer>(
      new FdPassingServer(patience, clock, std::move(name), std::move(listener), std::move(stop)));
}

FdPassingServer::FdPassingServer(absl::Duration patience, const Clock* clock, std::string name,
                                 FileDescriptor listener, FileDescriptor stop)
    : patience_(patience),
      clock_(clock),
      name_(std::move(name)),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      thread_([this] { Serve(); }) {}

FdPassingServer::~FdPassingServer() {
  (void)eventfd_write(stop_.get(), 1);
  thread_.join();
}

absl::StatusOr<uint64_t> FdPassingServer::Offer(std::shared_ptr<const Segment> ours,
                                                OnTaken taken) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t secret, Random());
  const absl::Duration now = clock_->Monotonic();
  absl::MutexLock lock(&mutex_);
  absl::erase_if(offers_, [now](const auto& offer) { return offer.second.expires < now; });
  offers_[secret] = {std::move(ours), std::move(taken), now + kOfferLives * patience_};
  return secret;
}

void FdPassingServer::Serve() {
  std::vector<Peer> peers;
  std::vector<pollfd> wanted;
  bool accepts = true;
  while (true) {
    wanted.clear();
    wanted.push_back({stop_.get(), POLLIN, 0});
    for (const Peer& peer : peers) wanted.push_back({peer.socket.get(), POLLIN, 0});
    if (accepts && peers.size() < kMaxPeers) wanted.push_back({listener_.get(), POLLIN, 0});
    int wait = peers.empty() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(patience_)) + 1;
    if (!accepts) wait = kNoDescriptorPauseMs;
    accepts = true;
    if (poll(wanted.data(), wanted.size(), wait) < 0 && errno != EINTR) return;
    if (wanted[0].revents != 0) return;
    const absl::Duration now = clock_->Monotonic();
    for (size_t i = 0; i < peers.size(); ++i) {
      const bool has_spoken = wanted[i + 1].revents != 0;
      if (has_spoken) Answer(peers[i].socket);
      if (has_spoken || peers[i].expires <= now) peers[i].socket = FileDescriptor();
    }
    peers.erase(
        std::remove_if(peers.begin(), peers.end(), [](const Peer& p) { return !p.socket.valid(); }),
        peers.end());
    if (wanted.back().fd == listener_.get() && wanted.back().revents != 0) accepts = Accept(&peers);
  }
}

// Whether there was a descriptor for the peer.
bool FdPassingServer::Accept(std::vector<Peer>* peers) {
  FileDescriptor peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!peer.valid()) return errno != EMFILE && errno != ENFILE;
  if (CheckPeer(peer).ok()) peers->push_back({std::move(peer), clock_->Monotonic() + patience_});
  return true;
}

// Who has gone hears nothing.
void FdPassingServer::Answer(const FileDescriptor& peer) {
  const FileDescriptor none;
  const absl::StatusOr<std::shared_ptr<const Segment>> ours = Exchange(peer);
  if (!ours.ok()) {
    (void)SendPacket(peer, absl::StrCat(kRefused, ours.status().message()), none);
    return;
  }
  (void)SendPacket(peer, kAgreed, *ours == nullptr ? none : (*ours)->descriptor());
}

absl::StatusOr<std::shared_ptr<const Segment>> FdPassingServer::Exchange(
    const FileDescriptor& peer) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Packet packet, ReceivePacket(peer));
  uint64_t secret = 0;
  if (packet.bytes.size() != sizeof secret) {
    return absl::InvalidArgumentError("expected a secret of 8 bytes");
  }
  std::memcpy(&secret, packet.bytes.data(), sizeof secret);
  Offered offer;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = offers_.find(secret);
    if (found == offers_.end() || found->second.expires < clock_->Monotonic()) {
      return absl::PermissionDeniedError("the secret is unknown, used or too old");
    }
    offer = std::move(found->second);
    offers_.erase(found);
  }
  std::shared_ptr<const Segment> theirs;
  if (packet.descriptor.valid()) {
    LOCKSTEP_ASSIGN_OR_RETURN(theirs, Segment::Map(packet.descriptor));
  }
  LOCKSTEP_RETURN_IF_ERROR(offer.taken(std::move(theirs)));
  return std::move(offer.ours);
}

}  // namespace lockstep::shm
