// A device for tests that is as far from the host as one can be: its memory faults when anything
// but work on its own streams touches it, and its work runs as late as it may, in any order that
// streams and events allow, chosen by a seed. Runs the ops of a CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tests/support/guarded_memory.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/device.h"
#include "worker/device/host_stream.h"

namespace lockstep::test {

class DeferredStream;
class DeferredEvent;

class DeferredDevice : public worker::Device {
 public:
  DeferredDevice(int threads, uint64_t seed);

  // Another device, with memory that this one's work must not touch. Seeds, waits, failures and the
  // status are those of both. Its streams and events go with those of this device, which outlives
  // it.
  std::unique_ptr<worker::Device> MakePeer();

  // The order of the work from now on. Whenever all work is done, the next seed is used.
  void Reseed(uint64_t seed);
  // The so-many-th wait of any stream from now on (from 0) is left out.
  void OmitWait(int64_t index);
  // Whether all work that was enqueued has run.
  bool IsIdle() const;
  // So far. A stream that waits once more for what it has waited for is not counted.
  int64_t waits() const;
  // The so-many-th task from now on (from 0) fails.
  void FailTask(int64_t index);

  // Runs `task`, which may touch the memory of all devices, once each of these streams, which are
  // of this device and its peers, has come to it; none goes on before. OmitWait leaves out none of
  // it.
  void EnqueueTogether(std::span<worker::HostStream* const> streams, const worker::HostTask& task);
  // These streams go no further until Unblock.
  void Block(std::span<worker::HostStream* const> streams);
  void Unblock();
  // Runs work until `event` has been reached. False: it is not, because streams are blocked.
  bool TryReach(worker::Event* event);

  std::string name() const override { return "deferred"; }
  bool is_host() const override { return false; }
  void MakeCurrent() const override { cpu_.MakeCurrent(); }
  absl::StatusOr<worker::DeviceBuffer> Allocate(size_t bytes) override;
  absl::StatusOr<worker::DeviceBuffer> AllocatePinned(size_t bytes) override;
  absl::StatusOr<worker::HostRegistration> RegisterReadOnly(std::span<const std::byte>) override {
    return worker::HostRegistration();
  }
  absl::StatusOr<worker::HostRegistration> RegisterHost(std::span<std::byte>) override {
    return worker::HostRegistration();
  }
  absl::StatusOr<std::unique_ptr<worker::Stream>> CreateStream(
      const worker::StreamOptions&) override;
  absl::StatusOr<std::unique_ptr<worker::Event>> CreateEvent() override;
  absl::Status status() const override;

 private:
  friend class DeferredStream;
  friend class DeferredEvent;
  friend class DeferredPeer;

  absl::StatusOr<worker::DeviceBuffer> Allocate(size_t bytes, GuardedMemory* memory);
  void UseSeed(uint64_t seed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The same.
  bool RunUntil(const DeferredEvent& event);
  bool AllHaveRun() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  DeferredStream* Choose(const std::vector<DeferredStream*>& ready)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunFirstOf(DeferredStream* stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  worker::CpuDevice cpu_;
  mutable absl::Mutex mutex_;
  GuardedMemory memory_ ABSL_GUARDED_BY(mutex_);
  std::vector<GuardedMemory*> all_memory_ ABSL_GUARDED_BY(mutex_);  // and that of the peers
  std::vector<DeferredStream*> streams_ ABSL_GUARDED_BY(mutex_);
  // Of EnqueueTogether; kept until all work is done.
  std::vector<std::unique_ptr<worker::Event>> meetings_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<worker::Event> unblocked_ ABSL_GUARDED_BY(mutex_);
  uint64_t seed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  // Streams take turns at random. False: one goes before the other, for as long as it can.
  bool in_turns_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t waits_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t omitted_wait_ ABSL_GUARDED_BY(mutex_) = -1;
  int64_t tasks_until_failure_ ABSL_GUARDED_BY(mutex_) = -1;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::test
