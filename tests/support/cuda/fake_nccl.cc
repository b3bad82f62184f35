#include "tests/support/cuda/fake_nccl.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "tests/support/cuda/fake_driver.h"
#include "worker/device/cuda/launch_lock.h"

namespace lockstep::test {

using namespace worker::cuda;  // the names of NCCL's interface

namespace {

constexpr int kFakeVersion = 29905;

FakeNccl* current = nullptr;

}  // namespace

struct FakeNcclCalls {
  static NcclResult GetVersion(int* version) {
    *version = kFakeVersion;
    return kNcclSuccess;
  }
  static const char* GetErrorString(NcclResult) { return "what NCCL says"; }
  static const char* GetLastError(NcclComm) { return "and more"; }

  static NcclResult CommInitAll(NcclComm* comms, int count, const int* devices) {
    if (const NcclResult failed = current->Enter("ncclCommInitAll")) return failed;
    const std::vector<int> all(devices, devices + count);
    for (const int device : all) {
      if (device >= FakeDriver::Current().device_count()) return kNcclInvalidArgument;
      if (std::ranges::count(all, device) != 1) return kNcclInvalidUsage;
    }
    for (int rank = 0; rank < count; ++rank) {
      auto comm = std::make_unique<FakeNccl::Comm>(
          FakeNccl::Comm{current->cliques_, rank, count, all[static_cast<size_t>(rank)]});
      comms[rank] = reinterpret_cast<NcclComm>(comm.get());
      current->comms_[comms[rank]] = std::move(comm);
    }
    ++current->cliques_;
    return kNcclSuccess;
  }
  // Frees also where it fails.
  static NcclResult CommDestroy(NcclComm comm) {
    const NcclResult result = current->Enter("ncclCommDestroy");
    return current->comms_.erase(comm) == 1 ? result : kNcclInvalidArgument;
  }
  static NcclResult CommAbort(NcclComm comm) {
    const NcclResult result = current->Enter("ncclCommAbort");
    ++current->aborted_;
    FakeDriver::Current().work()->Unblock();
    return current->comms_.erase(comm) == 1 ? result : kNcclInvalidArgument;
  }

  static NcclResult CommGetAsyncError(NcclComm comm, NcclResult* error) {
    *error = current->async_error_;
    return current->comms_.contains(comm) ? kNcclSuccess : kNcclInvalidArgument;
  }

  static NcclResult GroupStart() {
    if (const NcclResult failed = current->EnterGroup("ncclGroupStart")) return failed;
    current->is_in_group_ = true;
    current->group_error_ = kNcclSuccess;
    return kNcclSuccess;
  }
  static NcclResult Reduce(const void* from, void* to, size_t count, int type, int op, int root,
                           NcclComm comm, CUstream stream) {
    NcclResult result = current->EnterGroup("ncclReduce");
    const auto found = current->comms_.find(comm);
    const bool is_valid = type == kNcclFloat32 && op == kNcclSum && root == 0 &&
                          current->is_in_group_ && found != current->comms_.end();
    if (result == kNcclSuccess && !is_valid) result = kNcclInvalidArgument;
    if (result == kNcclSuccess) {
      const FakeNccl::Comm& own = *found->second;
      const size_t bytes = count * sizeof(float);
      const FakeDriver& driver = FakeDriver::Current();
      if (!driver.IsMemoryOf(own.device, from, bytes) ||
          (own.rank == 0 && !driver.IsMemoryOf(own.device, to, bytes))) {
        result = kNcclInvalidArgument;
      }
      current->group_[&own].push_back(
          {static_cast<const float*>(from), static_cast<float*>(to), count, stream});
    }
    if (result != kNcclSuccess) current->group_error_ = result;
    return result;
  }
  static NcclResult GroupEnd() {
    NcclResult result = current->EnterGroup("ncclGroupEnd");
    if (!std::exchange(current->is_in_group_, false)) return kNcclInvalidUsage;
    if (result == kNcclSuccess) result = current->group_error_;
    if (result == kNcclSuccess) result = current->LaunchGroup();
    current->group_.clear();
    return result;
  }
};

NcclFunctions FakeNccl::Functions() {
  NcclFunctions functions;
#define LOCKSTEP_FILL_FUNCTION(name, result, symbol, parameters) \
  functions.name = &FakeNcclCalls::name;
  LOCKSTEP_NCCL_FUNCTIONS(LOCKSTEP_FILL_FUNCTION)
#undef LOCKSTEP_FILL_FUNCTION
  return functions;
}

FakeNccl::FakeNccl()
    : library_([this] {
        LOCKSTEP_CHECK(current == nullptr);
        current = this;
        return *NcclLibrary::Create(Functions());
      }()) {}

FakeNccl::~FakeNccl() { current = nullptr; }

NcclResult FakeNccl::Enter(const char* call) {
  if (call == hanging_call_) {
    hanging_call_.clear();
    resumed_.WaitForNotification();
  }
  if (calls_++ != failing_call_) return kNcclSuccess;
  failed_call_ = call;
  return kNcclUnhandledCudaError;
}

NcclResult FakeNccl::EnterGroup(const char* call) {
  if (LaunchLock::held() != LaunchLock::Hold::kExclusive) launches_alone_ = false;
  return Enter(call);
}

NcclResult FakeNccl::LaunchGroup() {
  std::map<int, std::vector<std::pair<const Comm*, std::vector<Reduction>>>> by_clique;
  for (const auto& [comm, reductions] : group_) {
    by_clique[comm->clique].emplace_back(comm, reductions);
  }
  for (auto& [clique, ranks] : by_clique) {
    std::ranges::sort(ranks, {}, [](const auto& rank) { return rank.first->rank; });
    if (ranks.size() != static_cast<size_t>(ranks.front().first->ranks)) return kNcclInvalidUsage;
    std::vector<int> devices;
    for (const auto& [comm, reductions] : ranks) {
      if (reductions.size() != ranks.front().second.size()) return kNcclInvalidUsage;
      devices.push_back(comm->device);
    }
    for (size_t i = 0; i < ranks.front().second.size(); ++i) {
      std::vector<Reduction> by_rank;
      for (const auto& [comm, reductions] : ranks) by_rank.push_back(reductions[i]);
      if (const NcclResult failed = Launch(by_rank, devices)) return failed;
    }
  }
  return kNcclSuccess;
}

NcclResult FakeNccl::Launch(const std::vector<Reduction>& by_rank,
                            const std::vector<int>& devices) {
  std::vector<CUstream> streams;
  for (const Reduction& reduction : by_rank) {
    if (reduction.count != by_rank[0].count) return kNcclInvalidUsage;
    streams.push_back(reduction.stream);
  }
  FakeDriver& driver = FakeDriver::Current();
  if (std::exchange(fails_halfway_, false)) {
    failed_call_ = "ncclGroupEnd";
    streams.pop_back();
    driver.Block(streams);
    return kNcclUnhandledCudaError;
  }
  const int64_t group = groups_++;
  if (group == losing_group_) {
    streams.erase(streams.begin() + static_cast<std::ptrdiff_t>(lost_rank_));
    driver.Block(streams);
    driver.LoseDevice(devices[lost_rank_]);
    return kNcclSuccess;
  }
  if (group == endless_group_ || group == stalled_group_) {
    if (group == endless_group_) async_error_ = kNcclUnhandledCudaError;
    driver.Block(streams);
    return kNcclSuccess;
  }
  const auto sum = [by_rank] {
    for (size_t i = 0; i < by_rank[0].count; ++i) {
      float value = by_rank[1].from[i];
      for (size_t rank = 2; rank < by_rank.size(); ++rank) value += by_rank[rank].from[i];
      by_rank[0].to[i] = value + by_rank[0].from[i];
    }
  };
  return driver.EnqueueTogether(streams, devices, sum) ? kNcclSuccess : kNcclInvalidArgument;
}

}  // namespace lockstep::test
