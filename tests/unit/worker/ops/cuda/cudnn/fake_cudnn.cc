#include "tests/unit/worker/ops/cuda/cudnn/fake_cudnn.h"

#include <algorithm>
#include <cstring>

namespace lockstep::test {

using namespace worker::cuda;  // the names of cuDNN's interface

namespace {

FakeCudnn* current_cudnn = nullptr;

constexpr CudnnStatus kRefused = 2000;

}  // namespace

struct FakeCudnnCalls {
  using Descriptor = FakeCudnn::Descriptor;

  static Descriptor* Find(CudnnDescriptor handle) {
    const auto found = current_cudnn->descriptors_.find(handle);
    return found == current_cudnn->descriptors_.end() ? nullptr : found->second.get();
  }

  static const char* GetErrorString(CudnnStatus) { return "CUDNN_STATUS_FAKE"; }
  static void GetLastErrorString(char* text, size_t size) { std::strncpy(text, "why", size); }

  static CudnnStatus Create(int type, CudnnDescriptor* handle) {
    if (current_cudnn->Fails()) return kRefused;
    auto made = std::make_unique<Descriptor>();
    made->type = type;
    *handle = made.get();
    current_cudnn->descriptors_[*handle] = std::move(made);
    return kCudnnSuccess;
  }
  static CudnnStatus Destroy(CudnnDescriptor handle) {
    return current_cudnn->descriptors_.erase(handle) == 1 ? kCudnnSuccess : kRefused;
  }
  static CudnnStatus Finalize(CudnnDescriptor handle) {
    Descriptor* const own = Find(handle);
    if (own == nullptr || own->is_final || current_cudnn->Fails()) return kRefused;
    if (own->type == kExecutionPlanDescriptor && !own->engine->can_plan) {
      return kRefused;
    }
    own->is_final = true;
    return kCudnnSuccess;
  }
  static CudnnStatus Set(CudnnDescriptor handle, int name, int type, int64_t count,
                         const void* values) {
    Descriptor* const own = Find(handle);
    if (own == nullptr || own->is_final || current_cudnn->Fails()) return kRefused;
    if (type == kTypeDescriptor) {
      const Descriptor* const value = Find(*static_cast<const CudnnDescriptor*>(values));
      if (value == nullptr || !value->is_final) return kRefused;
      if (value->type == kEngineConfigDescriptor) own->engine = value->engine;
      return kCudnnSuccess;
    }
    if (type == kTypeFloat || type == kTypeChar) return kCudnnSuccess;
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(type == kTypeInt64 ? static_cast<const int64_t*>(values)[i]
                                           : static_cast<const int*>(values)[i]);
    }
    if (name == kHeuristicsMode) own->is_fallback = numbers[0] == kHeuristicModeFallback;
    current_cudnn->last_set_[own->type][name] = numbers;
    return kCudnnSuccess;
  }
  static CudnnStatus Get(CudnnDescriptor handle, int name, int, int64_t room, int64_t* count,
                         void* values) {
    const Descriptor* const own = Find(handle);
    if (own == nullptr || !own->is_final || current_cudnn->Fails()) return kRefused;
    const std::vector<FakeEngine>& engines =
        own->is_fallback ? current_cudnn->fallback_ : current_cudnn->engines_;
    switch (name) {
      case kHeuristicsResults:
        *count = static_cast<int64_t>(engines.size());
        for (int64_t i = 0; i < std::min(room, *count); ++i) {
          Fill(static_cast<CudnnDescriptor*>(values)[i], &engines[static_cast<size_t>(i)]);
        }
        return kCudnnSuccess;
      case kEngineConfigEngine:
        *count = 1;
        if (room > 0) Fill(*static_cast<CudnnDescriptor*>(values), own->engine);
        return kCudnnSuccess;
      case kEngineNumericalNotes:
        *count = static_cast<int64_t>(own->engine->notes.size());
        std::ranges::copy(own->engine->notes, static_cast<int*>(values));
        return kCudnnSuccess;
      case kPlanWorkspaceSize:
        *count = 1;
        *static_cast<int64_t*>(values) = own->engine->workspace;
        return kCudnnSuccess;
      default:
        return kRefused;
    }
  }
  static void Fill(CudnnDescriptor handle, const FakeEngine* engine) {
    Find(handle)->engine = engine;
    Find(handle)->is_final = true;
  }
};

FakeCudnn::FakeCudnn(std::vector<FakeEngine> engines, std::vector<FakeEngine> fallback)
    : engines_(std::move(engines)), fallback_(std::move(fallback)) {
  current_cudnn = this;
}

FakeCudnn::~FakeCudnn() { current_cudnn = nullptr; }

const CudnnFunctions& FakeCudnn::functions() {
  static const CudnnFunctions functions = {
      .GetErrorString = &FakeCudnnCalls::GetErrorString,
      .GetLastErrorString = &FakeCudnnCalls::GetLastErrorString,
      .CreateDescriptor = &FakeCudnnCalls::Create,
      .DestroyDescriptor = &FakeCudnnCalls::Destroy,
      .Finalize = &FakeCudnnCalls::Finalize,
      .SetAttribute = &FakeCudnnCalls::Set,
      .GetAttribute = &FakeCudnnCalls::Get,
  };
  return functions;
}

std::vector<int64_t> FakeCudnn::LastSet(int type, int attribute) const {
  const auto of_type = last_set_.find(type);
  if (of_type == last_set_.end()) return {};
  const auto found = of_type->second.find(attribute);
  return found == of_type->second.end() ? std::vector<int64_t>() : found->second;
}

}  // namespace lockstep::test
