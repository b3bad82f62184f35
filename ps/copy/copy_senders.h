// The senders of a ps process: they share one event queue and end with the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/rpc/credentials.h"
#include "common/rpc/event_queue.h"
#include "common/shm/segment.h"
#include "common/transport/grpc/peer.h"
#include "ps/copy/copy_sender.h"
#include "ps/service/serial_thread.h"
#include "ps/shard/copy_target.h"

namespace lockstep::ps {

// Thread-safe. Outlives the shards that it makes senders for.
class CopySenders {
 public:
  // Of the ps with this index. `credentials` may be null, as in ClientOptions. `clock`, of the
  // silence of copies, outlives the senders.
  CopySenders(uint32_t ps, std::shared_ptr<const rpc::Credentials> credentials, const Clock* clock)
      : ps_(ps), credentials_(std::move(credentials)), clock_(clock) {}
  ~CopySenders() { Close(); }

  // Over gRPC, and shared memory with a copy of this host; connects with the first message. The
  // target of a new copy is ready only after the copy has answered a ping, if the lease is not 0:
  // no step waits for a copy that cannot be reached. Logs when the copy refuses the primary, or a
  // new one is lost, or its host cannot be reached. Memory that the copy reads is taken by another
  // thread, since the caller holds the shard's lock. When the last pointer to the target goes, that
  // thread closes it, and lets its memory go.
  std::shared_ptr<CopyTarget> Make(CopyTargetOptions options);
  // As CopySender::Close, of all. Before the shards go. Targets that go later are closed.
  void Close();

 private:
  // That the ps with the copy can be reached, as long as there is a sender.
  struct Contact;
  struct Open {
    std::shared_ptr<CopySender> sender;
    std::shared_ptr<Contact> contact;  // null: CopyTargetOptions::lease is 0
    bool is_preparing = false;         // its memory is taken in the background
    bool is_left = false;              // the last pointer to its target has gone
  };

  // `on_reached` as of PeerContactOptions.
  std::shared_ptr<Contact> MakeContact(const CopyTargetOptions& options, const ClientOptions& peer,
                                       std::function<void()> on_reached)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the memory, if there is any; then calls `prepared`.
  void PrepareLater(const std::shared_ptr<CopySender>& sender,
                    const std::shared_ptr<shm::Segment>& memory, std::function<void()> prepared)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Closes the sender in the background, and destroys it. Where too much waits there, what is done
  // last there does it.
  void CloseLater(const std::shared_ptr<CopySender>& sender);
  // Of the background: closes and destroys those that are left, but for what is still prepared.
  void CloseLeft() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetPreparing(const std::shared_ptr<CopySender>& sender, bool is_preparing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] bool TryInBackground(absl::AnyInvocable<void()> work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint32_t ps_;
  const std::shared_ptr<const rpc::Credentials> credentials_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  std::unique_ptr<rpc::EventQueue> queue_ ABSL_GUARDED_BY(mutex_);    // where there is a sender
  std::vector<Open> senders_ ABSL_GUARDED_BY(mutex_);                 // that may be open
  std::unique_ptr<SerialThread> background_ ABSL_GUARDED_BY(mutex_);  // null: had nothing to do
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::ps
