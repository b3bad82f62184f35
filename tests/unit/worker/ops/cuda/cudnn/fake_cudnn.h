// A cuDNN whose heuristics name the engines that a test has listed: those of mode A, and the ones
// to fall back on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "worker/ops/cuda/cudnn/cudnn_api.h"

namespace lockstep::test {

struct FakeEngine {
  std::vector<int> notes;
  int64_t workspace = 0;
  bool can_plan = true;
};

// One at a time: cuDNN's functions have no object.
class FakeCudnn {
 public:
  explicit FakeCudnn(std::vector<FakeEngine> engines, std::vector<FakeEngine> fallback = {});
  ~FakeCudnn();

  static const worker::cuda::CudnnFunctions& functions();

  // The so-many-th call from now on (from 0) fails.
  void FailCall(int64_t index) { failing_call_ = calls_ + index; }
  int64_t calls() const { return calls_; }
  // Descriptors that exist.
  size_t live() const { return descriptors_.size(); }
  // Numbers and enumerators that were set, of the last descriptor of this type.
  std::vector<int64_t> LastSet(int type, int attribute) const;

 private:
  friend struct FakeCudnnCalls;

  struct Descriptor {
    int type = 0;
    bool is_final = false;
    bool is_fallback = false;            // of heuristics
    const FakeEngine* engine = nullptr;  // of a configuration, an engine or a plan
  };

  bool Fails() { return calls_++ == failing_call_; }

  const std::vector<FakeEngine> engines_;
  const std::vector<FakeEngine> fallback_;
  std::map<void*, std::unique_ptr<Descriptor>> descriptors_;
  std::map<int, std::map<int, std::vector<int64_t>>> last_set_;
  int64_t calls_ = 0;
  int64_t failing_call_ = -1;
};

}  // namespace lockstep::test
