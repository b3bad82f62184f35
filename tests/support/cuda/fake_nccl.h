// An NCCL over the fake driver: a sum is a loop of the host, run when the streams of all ranks have
// come to it, and added from the second rank around to the first, as ncclReduce goes around a ring.
// Refuses what would hang or crash: ranks that reduce different lengths, memory or streams of
// another GPU, a rank that is missing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::test {

inline constexpr worker::cuda::NcclResult kNcclUnhandledCudaError = 1;
inline constexpr worker::cuda::NcclResult kNcclInvalidArgument = 4;
inline constexpr worker::cuda::NcclResult kNcclInvalidUsage = 5;

// One at a time: NCCL's functions have no object. Used by one thread.
class FakeNccl {
 public:
  FakeNccl();
  ~FakeNccl();

  static worker::cuda::NcclFunctions Functions();
  const worker::cuda::NcclLibrary* library() const { return &library_; }

  // The so-many-th call from now on (from 0) fails. A group of which a call fails enqueues nothing.
  void FailCall(int64_t index) { failing_call_ = calls_ + index; }
  // The next ncclGroupEnd fails when it has enqueued the work of all ranks but the last: the others
  // wait for that until a communicator is aborted.
  void FailHalfway() { fails_halfway_ = true; }
  // The so-many-th group from now on (from 0) finds that this rank's GPU is lost: calls of the
  // driver for it fail, and the others wait for it until a communicator is aborted.
  void LoseRank(size_t rank, int64_t group) {
    lost_rank_ = rank;
    losing_group_ = groups_ + group;
  }
  // Reductions of all ranks that were enqueued so far.
  int64_t groups() const { return groups_; }
  // The so-many-th group from now on does not end, and ncclCommGetAsyncError tells of an error.
  void FailAsynchronously(int64_t group) { endless_group_ = groups_ + group; }
  // The so-many-th group from now on does not end, and no call tells of it.
  void Stall(int64_t group) { stalled_group_ = groups_ + group; }
  // The next call of this name does not return until Resume, which any thread may call, once.
  void HangIn(std::string call) { hanging_call_ = std::move(call); }
  void Resume() { resumed_.Notify(); }
  // Whether each of its calls for a group was made under the LaunchLock, alone.
  bool launches_alone() const { return launches_alone_; }
  // So far, but those of ncclCommGetAsyncError.
  int64_t calls() const { return calls_; }
  // "ncclGroupEnd"; empty: none has failed so.
  const std::string& failed_call() const { return failed_call_; }
  // Communicators that were made and neither destroyed nor aborted.
  size_t live() const { return comms_.size(); }
  int aborted() const { return aborted_; }

 private:
  friend struct FakeNcclCalls;

  struct Comm {
    int clique = 0;
    int rank = 0;
    int ranks = 0;
    int device = 0;
  };
  struct Reduction {
    const float* from = nullptr;
    float* to = nullptr;
    size_t count = 0;
    worker::cuda::CUstream stream = nullptr;
  };

  worker::cuda::NcclResult Enter(const char* call);
  worker::cuda::NcclResult EnterGroup(const char* call);
  worker::cuda::NcclResult LaunchGroup();
  // One of a clique, by rank.
  worker::cuda::NcclResult Launch(const std::vector<Reduction>& by_rank,
                                  const std::vector<int>& devices);

  std::map<worker::cuda::NcclComm, std::unique_ptr<Comm>> comms_;
  int cliques_ = 0;
  bool is_in_group_ = false;
  worker::cuda::NcclResult group_error_ = 0;
  std::map<const Comm*, std::vector<Reduction>> group_;  // of the group at hand, in their order
  bool fails_halfway_ = false;
  int64_t groups_ = 0;
  size_t lost_rank_ = 0;
  int64_t losing_group_ = -1;
  int64_t endless_group_ = -1;
  int64_t stalled_group_ = -1;
  worker::cuda::NcclResult async_error_ = 0;
  bool launches_alone_ = true;
  int aborted_ = 0;
  int64_t calls_ = 0;
  int64_t failing_call_ = -1;
  std::string failed_call_;
  std::string hanging_call_;
  absl::Notification resumed_;
  const worker::cuda::NcclLibrary library_;  // last: made by the functions
};

}  // namespace lockstep::test
