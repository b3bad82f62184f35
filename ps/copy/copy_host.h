// The second shard of a ps process, at a port of its own: a copy of the shard before its own in
// the ring of the ps. Made when a chief asks for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"
#include "ps/service/ps_server.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// Thread-safe.
class CopyHost {
 public:
  // Both as of the process's own shard; `serving.address` gives the host. `port` 0: any free one.
  // `shard.make_value_memory`, `serving.events.finished` and `serving.name_patience` are replaced.
  CopyHost(ShardOptions shard, PsServerOptions serving, uint32_t num_ps, uint32_t port);

  // The port, which is opened by the first call. FAILED_PRECONDITION: there is one ps alone. Errors
  // of Server::Start; a name that does not resolve is not waited for.
  absl::StatusOr<uint32_t> Open();
  // Returns when a chief has told the copy, too, that the job is over, after `patience` at most. At
  // once where there are no variables.
  void AwaitFinish(absl::Duration patience);
  // Of the copy; nothing while there is none. Does not wait for Open, which may look up a name.
  ShardActivity Activity() const;
  // ShardState::holds_unsaved of the copy; false while there is none.
  bool HoldsUnsaved() const;
  // Shard::LookForCheckpoint of the copy; does nothing while there is none.
  void LookForCheckpoint() const;
  // Whether a chief has asked for a copy, of a job whose shards have copies.
  bool is_open() const { return served_.load(std::memory_order_acquire) != nullptr; }
  // As PsServer.
  void Leave();
  void TellStandbys();
  void Shutdown(absl::Duration grace);

 private:
  ShardOptions shard_options_;
  PsServerOptions serving_;
  const uint32_t num_ps_;
  const uint32_t port_;
  SharedMemoryRegistry memory_;
  absl::once_flag first_finish_;  // a chief may tell it twice
  MonotonicNotification finished_;
  absl::Mutex mutex_;
  std::unique_ptr<Shard> shard_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<PsServer> server_ ABSL_GUARDED_BY(mutex_);  // stays from the first Open on
  // shard_, which stays from then on. Null while no server serves it.
  std::atomic<Shard*> served_ = nullptr;
};

}  // namespace lockstep::ps
