// The streams of a CPU: lazy ones, whose work runs on the thread that waits for it, and ones with a
// thread of their own.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/device/host_stream.h"

namespace lockstep::worker {

class CpuStream;

// Thread-safe.
class CpuEvent : public Event {
 public:
  explicit CpuEvent(CpuDevice* device) : device_(device) {}

  absl::Status Wait() override;

  // Of a stream: its next point is this event. Returns how many times it has been recorded.
  uint64_t Recorded(CpuStream* stream);
  uint64_t times_recorded() const;
  // The stream has passed the point of that Record.
  void Reach(uint64_t time);
  bool HasReached(uint64_t time) const;
  // Runs a lazy stream up to the point; waits for another.
  void WaitUntil(uint64_t time);

 private:
  CpuDevice* const device_;
  mutable absl::Mutex mutex_;
  CpuStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the last Record
  uint64_t recorded_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reached_ ABSL_GUARDED_BY(mutex_) = 0;
};

class CpuStream : public HostStream {
 public:
  void Enqueue(const HostTask& task) override { Add({task, /*skippable=*/true}); }
  void Record(Event* event) override;
  void WaitFor(Event* event) override;

  // Makes sure that this stream goes on until `event` has been reached so many times: a lazy one
  // runs its work here and now.
  virtual void RunUntil(const CpuEvent& event, uint64_t time) = 0;

 protected:
  struct Work {
    HostTask task;
    bool skippable = false;  // after an error; events are reached all the same
  };

  explicit CpuStream(CpuDevice* device) : device_(device) {}
  virtual void Add(const Work& work) = 0;
  void Run(const Work& work);

  CpuDevice* const device_;
};

// Used by one thread at a time, events included. Allocates nothing once its queue has been as long
// as it ever will.
class LazyCpuStream : public CpuStream {
 public:
  explicit LazyCpuStream(CpuDevice* device) : CpuStream(device) {}
  void RunUntil(const CpuEvent& event, uint64_t time) override;

 private:
  void Add(const Work& work) override { queue_.push_back(work); }

  std::vector<Work> queue_;
  size_t next_ = 0;  // in queue_
};

class BackgroundCpuStream : public CpuStream {
 public:
  explicit BackgroundCpuStream(CpuDevice* device);
  ~BackgroundCpuStream() override;
  void RunUntil(const CpuEvent&, uint64_t) override {}

 private:
  void Add(const Work& work) override;
  void RunQueue();

  absl::Mutex mutex_;
  std::vector<Work> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::worker
