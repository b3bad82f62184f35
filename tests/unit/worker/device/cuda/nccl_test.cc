// NCCL that is opened at run time, and communicators of an NCCL that is imitated.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"
#include "common/tensor/tensor.h"
#include "tests/support/cuda/fake_driver.h"
#include "tests/support/cuda/fake_nccl.h"
#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/launch_lock.h"
#include "worker/device/cuda/nccl_communicator.h"
#include "worker/device/cuda/nccl_library.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeDriver;
using test::FakeNccl;

TEST_CASE("NCCL that is missing, or lacks a function, is named with the remedy") {
  const absl::Status missing = NcclLibrary::Open("libnccl_that_is_missing.so").status();
  CHECK(absl::IsFailedPrecondition(missing));
  CHECK_THAT(std::string(missing.message()),
             Catch::StartsWith("no NCCL: libnccl_that_is_missing.so: ") &&
                 Catch::EndsWith(". Remedy: install NCCL 2.13 or later"));
  const absl::Status old = NcclLibrary::Open("libc.so.6").status();
  CHECK(old == absl::FailedPreconditionError("NCCL is too old: libc.so.6 has no ncclGetVersion. "
                                             "Remedy: install NCCL 2.13 or later"));
}

TEST_CASE("NCCL tells its version, and its errors are a call, their name and its last words") {
  const FakeNccl nccl;
  CHECK(nccl.library()->version() == "2.99.5");
  CHECK(nccl.library()->ToStatus(kNcclSuccess, "ncclReduce").ok());
  CHECK(nccl.library()->ToStatus(1, "ncclReduce") ==
        absl::InternalError("ncclReduce: what NCCL says: and more"));

  NcclFunctions functions = FakeNccl::Functions();
  functions.GetLastError = [](NcclComm) -> const char* { return ""; };
  CHECK(NcclLibrary::Create(functions)->ToStatus(1, "ncclReduce").message() ==
        "ncclReduce: what NCCL says");
  functions.GetVersion = [](int*) -> NcclResult { return 1; };
  CHECK(absl::IsFailedPrecondition(NcclLibrary::Create(functions).status()));
}

// GPUs of the fake driver, each with a stream and a place for some values.
class Ranks {
 public:
  static constexpr int64_t kElements = 5;

  explicit Ranks(int count) : fake_(1), driver_(*Driver::Create(FakeDriver::functions(), 0)) {
    fake_.SetDeviceCount(count);
    for (int i = 0; i < count; ++i) {
      gpus_.push_back(*CudaDevice::Create(driver_.get(), i));
      streams_.push_back(*gpus_.back()->CreateStream({}));
      memory_.push_back(*gpus_.back()->Allocate(kElements * sizeof(float)));
      pinned_.push_back(*gpus_.back()->AllocatePinned(kElements * sizeof(float)));
    }
  }

  std::vector<CudaDevice*> gpus() const {
    std::vector<CudaDevice*> all;
    for (const auto& gpu : gpus_) all.push_back(gpu.get());
    return all;
  }
  std::vector<Stream*> streams() const {
    std::vector<Stream*> all;
    for (const auto& stream : streams_) all.push_back(stream.get());
    return all;
  }
  // On the GPU i the values i + 1, 2 * (i + 1), ...
  std::vector<MutableTensorView> Fill() {
    std::vector<MutableTensorView> all;
    for (size_t i = 0; i < gpus_.size(); ++i) {
      auto* const values = reinterpret_cast<float*>(pinned_[i].get());
      for (int64_t k = 0; k < kElements; ++k) {
        values[k] = static_cast<float>(i + 1) * static_cast<float>(k + 1);
      }
      streams_[i]->CopyToDevice(memory_[i].get(), values, kElements * sizeof(float));
      all.push_back({DType::kFloat32, Shape({kElements}), memory_[i].get()});
    }
    return all;
  }
  // What this GPU has in the end.
  std::vector<float> Read(size_t gpu) {
    streams_[gpu]->CopyToHost(pinned_[gpu].get(), memory_[gpu].get(), kElements * sizeof(float));
    const auto done = *gpus_[gpu]->CreateEvent();
    streams_[gpu]->Record(done.get());
    REQUIRE(done->Wait().ok());
    const auto* const values = reinterpret_cast<const float*>(pinned_[gpu].get());
    return {values, values + kElements};
  }

 private:
  FakeDriver fake_;
  std::unique_ptr<Driver> driver_;
  std::vector<std::unique_ptr<CudaDevice>> gpus_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<DeviceBuffer> memory_;
  std::vector<DeviceBuffer> pinned_;
};

TEST_CASE("the first GPU gets the sum once all have come to it, and the others keep theirs") {
  Ranks ranks(3);
  FakeNccl nccl;
  const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus());
  CHECK(nccl.live() == 3);
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    FakeDriver::Current().work()->Reseed(seed);
    const std::vector<Stream*> streams = ranks.streams();
    REQUIRE(communicator->ReduceToFirst(ranks.Fill(), streams).ok());
    CHECK(ranks.Read(0) == std::vector<float>{6, 12, 18, 24, 30});
    CHECK(ranks.Read(2) == std::vector<float>{3, 6, 9, 12, 15});
    CHECK(ranks.Read(1) == std::vector<float>{2, 4, 6, 8, 10});
  }
}

TEST_CASE("communicators end with their owner, also where NCCL refuses that") {
  const Ranks ranks(2);
  FakeNccl nccl;
  { const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus()); }
  CHECK(nccl.live() == 0);
  CHECK(nccl.aborted() == 0);
  {
    const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus());
    nccl.FailCall(0);
  }
  CHECK(nccl.failed_call() == "ncclCommDestroy");
  CHECK(nccl.live() == 0);
}

TEST_CASE("GPUs that NCCL refuses leave nothing behind") {
  const Ranks ranks(2);
  FakeNccl nccl;
  CudaDevice* const gpu = ranks.gpus()[0];
  const absl::Status twice = NcclCommunicator::Create(nccl.library(), {gpu, gpu}).status();
  CHECK(twice == absl::InternalError("cuda:0,cuda:0: ncclCommInitAll: what NCCL says: and more"));
  CHECK(nccl.live() == 0);
}

TEST_CASE("a refusal to connect the GPUs comes as they are made a communicator") {
  constexpr int64_t kCalls = 5;  // init, begin of a group, a reduction for each GPU, its end
  for (int64_t n = 0; n < kCalls; ++n) {
    CAPTURE(n);
    const Ranks ranks(2);
    const size_t live = FakeDriver::Current().live();
    FakeNccl nccl;
    nccl.FailCall(n);
    const absl::Status refused = NcclCommunicator::Create(nccl.library(), ranks.gpus()).status();
    CHECK(absl::IsInternal(refused));
    CHECK_THAT(std::string(refused.message()),
               Catch::StartsWith("cuda:0,cuda:1: " + nccl.failed_call()));
    CHECK(nccl.live() == 0);
    CHECK(FakeDriver::Current().live() == live);
    // Gradients are copied from then on.
    for (const CudaDevice* const gpu : ranks.gpus()) CHECK(gpu->status().ok());
  }
}

TEST_CASE("a first sum that some GPUs alone have begun, that fails or stalls ends Create") {
  const auto refused = [](const std::function<void(FakeNccl*)>& fail) {
    const Ranks ranks(3);
    const size_t live = FakeDriver::Current().live();
    FakeNccl nccl;
    fail(&nccl);
    const absl::Status status = NcclCommunicator::Create(nccl.library(), ranks.gpus(),
                                                         {.first_sum_limit = absl::ZeroDuration()})
                                    .status();
    CHECK(nccl.aborted() == 3);
    CHECK(FakeDriver::Current().live() == live);
    for (const CudaDevice* const gpu : ranks.gpus()) CHECK(gpu->status().ok());
    return std::string(status.message());
  };
  CHECK(refused([](FakeNccl* nccl) { nccl->FailHalfway(); }) ==
        "cuda:0,cuda:1,cuda:2: ncclGroupEnd: what NCCL says: and more");
  CHECK(refused([](FakeNccl* nccl) { nccl->FailAsynchronously(0); }) ==
        "cuda:0,cuda:1,cuda:2: ncclReduce: what NCCL says: and more");
  CHECK_THAT(refused([](FakeNccl* nccl) { nccl->Stall(0); }),
             Catch::StartsWith("cuda:0,cuda:1,cuda:2: ncclReduce: expected a sum within 0, got "
                               "none. Remedy: NCCL_P2P_DISABLE=1"));
}

TEST_CASE("a GPU without memory for the first sum is named, and keeps no communicator") {
  const Ranks ranks(2);
  FakeDriver::Current().SetMemory(2 * Ranks::kElements * sizeof(float));
  const DeviceBuffer rest = *ranks.gpus()[1]->Allocate(Ranks::kElements * sizeof(float));
  FakeNccl nccl;
  const absl::Status refused = NcclCommunicator::Create(nccl.library(), ranks.gpus()).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()), Catch::StartsWith("cuda:1: no memory for 4 bytes"));
  CHECK(nccl.live() == 0);
}

// What a communicator tells of a call that does not return until then, when the process would end.
// The limit may be over for others, too, on a machine that is busy.
std::function<void(const std::string&)> ResumeCall(const char* call, FakeNccl* nccl,
                                                   std::string* told) {
  return [call, nccl, told](const std::string& what) {
    if (!told->empty() || !absl::StrContains(what, call)) return;
    *told = what;
    nccl->Resume();
  };
}

TEST_CASE("a call of NCCL that does not return is told of, with the GPUs, the time and a remedy") {
  constexpr absl::Duration kShort = absl::Milliseconds(1);
  const auto told = [](const char* call, NcclOptions options) {
    const Ranks ranks(2);
    FakeNccl nccl;
    nccl.HangIn(call);
    std::string what;
    options.on_stuck = ResumeCall(call, &nccl, &what);
    CHECK(NcclCommunicator::Create(nccl.library(), ranks.gpus(), options).ok());
    return what;
  };
  CHECK_THAT(told("ncclCommInitAll", {.connect_limit = kShort}),
             Catch::StartsWith("cuda:0,cuda:1: ncclCommInitAll has not returned within 1ms. "
                               "Remedy: NCCL_P2P_DISABLE=1") &&
                 Catch::Contains("reduction_to_one_device"));
  CHECK_THAT(told("ncclGroupEnd", {.connect_limit = kShort}),
             Catch::StartsWith("cuda:0,cuda:1: ncclGroupEnd has not returned within 1ms. "));
  CHECK_THAT(told("ncclCommDestroy", {.call_limit = kShort}),
             Catch::StartsWith("cuda:0,cuda:1: ncclCommDestroy has not returned within 1ms. "));
}

TEST_CASE("a step's call of NCCL has a limit of its own") {
  Ranks ranks(2);
  FakeNccl nccl;
  std::string what;
  const auto communicator = *NcclCommunicator::Create(
      nccl.library(), ranks.gpus(),
      {.call_limit = absl::Milliseconds(2), .on_stuck = ResumeCall("ncclGroupEnd", &nccl, &what)});
  const std::vector<Stream*> streams = ranks.streams();
  const std::vector<MutableTensorView> values = ranks.Fill();
  nccl.HangIn("ncclGroupEnd");
  CHECK(communicator->ReduceToFirst(values, streams).ok());
  CHECK_THAT(what, Catch::StartsWith("cuda:0,cuda:1: ncclGroupEnd has not returned within 2ms. "));
  CHECK(ranks.Read(0) == std::vector<float>{3, 6, 9, 12, 15});
}

// As a call that frees memory of a GPU whose kernel waits for one that is lost.
TEST_CASE("a sum that waits for another thread's call of CUDA has the limit of connecting") {
  constexpr absl::Duration kEnough = absl::Seconds(20);  // where nothing is told of
  Ranks ranks(2);
  FakeNccl nccl;
  std::string what;
  absl::Notification begun;
  absl::Notification told;
  const auto on_stuck = [&](const std::string& late) {
    if (!absl::StrContains(late, "another thread") || told.HasBeenNotified()) return;
    what = late;
    told.Notify();
  };
  const auto communicator = *NcclCommunicator::Create(
      nccl.library(), ranks.gpus(), {.connect_limit = absl::Milliseconds(2), .on_stuck = on_stuck});
  const std::vector<Stream*> streams = ranks.streams();
  const std::vector<MutableTensorView> values = ranks.Fill();
  std::thread other([&] {
    const LaunchLock::Shared call;
    begun.Notify();
    told.WaitForNotificationWithTimeout(kEnough);
  });
  begun.WaitForNotification();
  CHECK(communicator->ReduceToFirst(values, streams).ok());
  other.join();
  CHECK_THAT(what, Catch::StartsWith("cuda:0,cuda:1: a call of CUDA by another thread has not "
                                     "returned within 2ms. Remedy: ") &&
                       Catch::Contains("nvidia-smi"));
  CHECK(ranks.Read(0) == std::vector<float>{3, 6, 9, 12, 15});
}

TEST_CASE("after an abort each reduction is refused, and nothing waits") {
  Ranks ranks(2);
  FakeNccl nccl;
  const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus());
  const std::vector<Stream*> streams = ranks.streams();
  const std::vector<MutableTensorView> values = ranks.Fill();
  nccl.FailHalfway();
  const absl::Status failed = communicator->ReduceToFirst(values, streams);
  CHECK_THAT(std::string(failed.message()), Catch::StartsWith("cuda:0,cuda:1: ncclGroupEnd: "));
  CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
  const int64_t calls = nccl.calls();
  CHECK(communicator->ReduceToFirst(values, streams) == failed);
  CHECK(nccl.calls() == calls);
  communicator->Abort(failed);
  communicator->Abort(failed);
  CHECK(nccl.aborted() == 2);
  CHECK(ranks.Read(0) == std::vector<float>{1, 2, 3, 4, 5});
  CHECK(communicator->ReduceToFirst(values, streams) == failed);
}

TEST_CASE("what is aborted for a step's error tells that error from then on") {
  Ranks ranks(2);
  FakeNccl nccl;
  const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus());
  const std::vector<Stream*> streams = ranks.streams();
  const std::vector<MutableTensorView> values = ranks.Fill();
  communicator->Abort(absl::InvalidArgumentError("a batch of 3 examples"));
  communicator->Abort(absl::InternalError("a later one"));
  CHECK(communicator->ReduceToFirst(values, streams) ==
        absl::InvalidArgumentError("cuda:0,cuda:1: NCCL was aborted, because a step failed: a "
                                   "batch of 3 examples"));
}

TEST_CASE("a GPU that has failed is told of before NCCL is asked") {
  Ranks ranks(2);
  FakeNccl nccl;
  const auto communicator = *NcclCommunicator::Create(nccl.library(), ranks.gpus());
  const std::vector<Stream*> streams = ranks.streams();
  const std::vector<MutableTensorView> values = ranks.Fill();
  const int64_t calls = nccl.calls();
  ranks.gpus()[1]->Fail(test::kErrorLaunchFailed, "cuLaunchKernel");
  const absl::Status failed = communicator->ReduceToFirst(values, streams);
  CHECK_THAT(std::string(failed.message()), Catch::StartsWith("cuda:1: cuLaunchKernel: "));
  communicator->Abort(failed);
  CHECK(communicator->ReduceToFirst(values, streams) == failed);
  CHECK(nccl.calls() == calls + 2);  // both communicators were aborted
}

}  // namespace
}  // namespace lockstep::worker::cuda
