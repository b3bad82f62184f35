// Captures and graphs.
#include <memory>
#include <thread>
#include <utility>

#include "tests/support/cuda/fake_calls.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUgraph;
using worker::cuda::CUgraphExec;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kCaptureThreadLocal;
using worker::cuda::kErrorCaptureInvalidated;
using worker::cuda::kErrorCaptureUnsupported;
using worker::cuda::kErrorCaptureWrongThread;
using worker::cuda::kSuccess;

void FakeGraphCalls::AddTo(DriverFunctions* functions) {
  functions->StreamBeginCapture = [](CUstream stream, int mode) -> CUresult {
    return Call("cuStreamBeginCapture", [&](FakeDriver& driver) {
      if (driver.Find(stream) == nullptr) return kErrorInvalidHandle;
      if (mode != kCaptureThreadLocal) return kErrorInvalidValue;
      const bool begins =
          driver.captures_.try_emplace(stream, FakeDriver::Capture{{}, std::this_thread::get_id()})
              .second;
      return begins ? kSuccess : kErrorIllegalState;
    });
  };
  functions->StreamEndCapture = [](CUstream stream, CUgraph* graph) -> CUresult {
    return Free("cuStreamEndCapture", [&](FakeDriver& driver) {
      *graph = nullptr;
      const auto found = driver.captures_.find(stream);
      if (found == driver.captures_.end()) return kErrorIllegalState;
      if (found->second.thread != std::this_thread::get_id()) return kErrorCaptureWrongThread;
      const FakeDriver::Capture capture = std::move(found->second);
      driver.captures_.erase(found);
      if (!capture.is_valid) return kErrorCaptureInvalidated;
      auto made = std::make_unique<FakeDriver::Graph>(capture.graph);
      *graph = reinterpret_cast<CUgraph>(made.get());
      driver.graphs_[*graph] = std::move(made);
      return kSuccess;
    });
  };
  functions->GraphInstantiate = [](CUgraphExec* executable, CUgraph graph,
                                   unsigned long long) -> CUresult {
    return Call("cuGraphInstantiateWithFlags", [&](FakeDriver& driver) {
      const auto found = driver.graphs_.find(graph);
      if (found == driver.graphs_.end()) return kErrorInvalidValue;
      auto made = std::make_unique<FakeDriver::Graph>(*found->second);
      *executable = reinterpret_cast<CUgraphExec>(made.get());
      driver.executables_[*executable] = std::move(made);
      return kSuccess;
    });
  };
  functions->GraphUpload = [](CUgraphExec executable, CUstream stream) -> CUresult {
    return Call("cuGraphUpload", [&](FakeDriver& driver) {
      const auto found = driver.executables_.find(executable);
      if (found == driver.executables_.end() || driver.Find(stream) == nullptr) {
        return kErrorInvalidValue;
      }
      return driver.CaptureOf(stream) == nullptr ? kSuccess : kErrorCaptureUnsupported;
    });
  };
  functions->GraphLaunch = [](CUgraphExec executable, CUstream stream) -> CUresult {
    return Call("cuGraphLaunch", [&](FakeDriver& driver) {
      const auto found = driver.executables_.find(executable);
      HostStream* const on = driver.Find(stream);
      if (found == driver.executables_.end() || on == nullptr) return kErrorInvalidValue;
      if (driver.CaptureOf(stream) != nullptr) return kErrorCaptureUnsupported;
      for (const FakeDriver::Node& node : *found->second) node(on);
      return kSuccess;
    });
  };
  functions->GraphExecDestroy = [](CUgraphExec executable) -> CUresult {
    return Free("cuGraphExecDestroy", [&](FakeDriver& driver) {
      return driver.executables_.erase(executable) == 1 ? kSuccess : kErrorInvalidValue;
    });
  };
  functions->GraphDestroy = [](CUgraph graph) -> CUresult {
    return Free("cuGraphDestroy", [&](FakeDriver& driver) {
      return driver.graphs_.erase(graph) == 1 ? kSuccess : kErrorInvalidValue;
    });
  };
}

}  // namespace lockstep::test
