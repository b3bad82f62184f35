#include "ps/copy/copy_senders.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/contact/peer_contact.h"
#include "common/contact/ps_ping.h"
#include "common/log/log.h"
#include "common/rpc/alarm_timer.h"
#include "common/transport/grpc/grpc_transport.h"
#include "common/transport/grpc_shm/shared_memory_transport.h"

namespace lockstep::ps {
namespace {

constexpr char kSegmentName[] = "lockstep-means";

// Null: the means travel as bytes.
std::shared_ptr<shm::Segment> MakeSharedMemory(const CopyTargetOptions& options,
                                               const std::string& peer) {
  if (options.shared_bytes == 0) return nullptr;
  auto segment = shm::Segment::Reserve(kSegmentName, options.shared_bytes);
  if (segment.ok()) return *std::move(segment);
  log::Info(
      absl::StrCat(peer, ": shared memory unavailable, using gRPC: ", segment.status().message()));
  return nullptr;
}

std::unique_ptr<TensorTransport> MakeTransport(const ClientOptions& options,
                                               std::shared_ptr<const shm::Segment> memory) {
  if (memory == nullptr) return std::make_unique<GrpcTransport>(options);
  return std::make_unique<SharedMemoryTransport>(
      options, std::move(memory), [peer = options.name](const absl::Status& opened) {
        log::Info(opened.ok()
                      ? absl::StrCat(peer, ": reads gradients in shared memory")
                      : absl::StrCat(
                            peer, ": shared memory unavailable, using gRPC: ", opened.message()));
      });
}

}  // namespace

struct CopySenders::Contact {
  Contact(rpc::EventQueue* queue, const CopyTargetOptions& copy, std::unique_ptr<PeerPing> ping,
          std::function<void()> on_reached)
      : timer(queue),
        peer({.lease = copy.lease, .timer = &timer, .on_reached = std::move(on_reached)}, copy.host,
             std::move(ping)) {}

  rpc::AlarmTimer timer;
  PeerContact peer;
};

std::shared_ptr<CopyTarget> CopySenders::Make(CopyTargetOptions options) {
  options.refused = [refused = std::move(options.refused),
                     shard = options.shard.value()](const absl::Status& status) {
    log::Warning(absl::StrCat("this ps serves shard ", shard,
                              " no more, its copy does: ", status.message()));
    refused(status);
  };
  options.lost = [lost = std::move(options.lost), address = options.address,
                  shard = options.shard.value()](const absl::Status& why) {
    log::Warning(absl::StrCat("shard ", shard, " goes on without the new copy at ", address, ": ",
                              why.message()));
    lost(why);
  };
  std::shared_ptr<CopySender> sender;
  {
    absl::MutexLock lock(&mutex_);
    if (queue_ == nullptr) queue_ = std::make_unique<rpc::EventQueue>();
    const ClientOptions peer{.address = options.address,
                             .name = absl::StrCat("the copy of ps ", options.shard.value()),
                             .queue = queue_.get(),
                             .credentials = credentials_,
                             .checksums = options.checksums};
    const std::shared_ptr<shm::Segment> memory = MakeSharedMemory(options, peer.name);
    sender = std::make_shared<CopySender>(options, MeanMemory(memory), MakeTransport(peer, memory),
                                          std::make_unique<rpc::AlarmTimer>(queue_.get()), clock_);
    if (!options.is_new) sender->Hold();
    const bool awaits_answer = options.is_new && options.lease > absl::ZeroDuration();
    const auto missing = std::make_shared<std::atomic<int>>(awaits_answer ? 2 : 1);
    const auto count = [sender, missing] {
      if (missing->fetch_sub(1) == 1) sender->SetReady();
    };
    const std::function<void()> on_reached = awaits_answer ? count : std::function<void()>();
    senders_.push_back({sender, MakeContact(options, peer, on_reached)});
    PrepareLater(sender, memory, count);
  }
  CopyTarget* const target = sender.get();
  return {target, [this, sender = std::move(sender)](CopyTarget*) { CloseLater(sender); }};
}

std::shared_ptr<CopySenders::Contact> CopySenders::MakeContact(const CopyTargetOptions& options,
                                                               const ClientOptions& peer,
                                                               std::function<void()> on_reached) {
  if (options.lease <= absl::ZeroDuration()) return nullptr;
  ServerPingRequest request;
  request.set_ps(ps_);
  request.set_lease_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(options.lease)));
  return std::make_shared<Contact>(queue_.get(), options, MakePsPing(peer, request),
                                   std::move(on_reached));
}

void CopySenders::PrepareLater(const std::shared_ptr<CopySender>& sender,
                               const std::shared_ptr<shm::Segment>& memory,
                               std::function<void()> prepared) {
  if (memory == nullptr) return prepared();
  SetPreparing(sender, true);
  const bool is_queued = TryInBackground([this, sender, memory, prepared] {
    // The copy does not map memory that is not there, and gets bytes.
    if (const absl::Status taken = memory->TakeMemory(); !taken.ok()) {
      log::Info(absl::StrCat("memory for a copy's means: ", taken.message(), ", using gRPC"));
    }
    prepared();
    absl::MutexLock lock(&mutex_);
    SetPreparing(sender, false);
  });
  if (is_queued) return;
  SetPreparing(sender, false);
  prepared();
}

void CopySenders::SetPreparing(const std::shared_ptr<CopySender>& sender, bool is_preparing) {
  const auto open = std::ranges::find(senders_, sender, &Open::sender);
  if (open != senders_.end()) open->is_preparing = is_preparing;
}

bool CopySenders::TryInBackground(absl::AnyInvocable<void()> work) {
  if (background_ == nullptr) background_ = std::make_unique<SerialThread>();
  // Also those for which there was no room here while this waited.
  return background_->TryDo([this, work = std::move(work)]() mutable {
    work();
    CloseLeft();
  });
}

void CopySenders::CloseLater(const std::shared_ptr<CopySender>& sender) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_) return;
  const auto open = std::ranges::find(senders_, sender, &Open::sender);
  if (open == senders_.end()) return;
  if (open->contact != nullptr) open->contact->peer.Mute();
  open->is_left = true;
  // Where there is no room, something waits that closes it, too.
  (void)TryInBackground([] {});
}

void CopySenders::CloseLeft() {
  std::vector<Open> left;
  {
    absl::MutexLock lock(&mutex_);
    const auto first = std::partition(senders_.begin(), senders_.end(), [](const Open& open) {
      return !open.is_left || open.is_preparing;
    });
    left.assign(std::make_move_iterator(first), std::make_move_iterator(senders_.end()));
    senders_.erase(first, senders_.end());
  }
  for (const Open& open : left) open.sender->Close();
  // The end of a contact waits for callbacks.
}

void CopySenders::Close() {
  std::vector<Open> senders;
  std::unique_ptr<SerialThread> background;
  {
    absl::MutexLock lock(&mutex_);
    is_closed_ = true;
    senders.swap(senders_);
    background = std::move(background_);
  }
  // The thread may tell callbacks of a sender that it closes.
  background.reset();
  for (const Open& open : senders) open.sender->Close();
}

}  // namespace lockstep::ps
