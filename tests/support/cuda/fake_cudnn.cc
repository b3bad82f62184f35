#include "tests/support/cuda/fake_cudnn.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "tests/support/cuda/fake_convolution.h"
#include "tests/support/cuda/fake_driver.h"

namespace lockstep::worker::cuda {

// What a handle of the interface is here.
struct CudnnContext {
  CUstream stream = nullptr;
};

}  // namespace lockstep::worker::cuda

namespace lockstep::test {

using namespace worker::cuda;  // the names of cuDNN's interface

namespace {

FakeCudnn* current_cudnn = nullptr;

constexpr CudnnStatus kRefused = kCudnnBadParameter;
constexpr uintptr_t kAlignment = 16;  // that plans are told of

bool IsOperand(const void* pointer) {
  return pointer != nullptr && reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
}

}  // namespace

struct FakeCudnnCalls {
  using Descriptor = FakeCudnn::Descriptor;

  static std::shared_ptr<Descriptor> Find(CudnnDescriptor handle) {
    const auto found = current_cudnn->descriptors_.find(handle);
    return found == current_cudnn->descriptors_.end() ? nullptr : found->second;
  }

  static const char* GetErrorString(CudnnStatus) { return "CUDNN_STATUS_FAKE"; }
  static void GetLastErrorString(char* text, size_t size) { std::strncpy(text, "why", size); }

  static CudnnStatus CreateHandle(CudnnContext** handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    FakeDriver::Current().WaitForDevice();
    auto made = std::make_unique<CudnnContext>();
    *handle = made.get();
    current_cudnn->handles_[*handle] = std::move(made);
    return kCudnnSuccess;
  }
  static CudnnStatus DestroyHandle(CudnnContext* handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    FakeDriver::Current().WaitForDevice();
    return current_cudnn->handles_.erase(handle) == 1 ? kCudnnSuccess : kRefused;
  }
  static CudnnStatus SetStream(CudnnContext* handle, CUstream stream) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    if (!current_cudnn->handles_.contains(handle)) return kRefused;
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    handle->stream = stream;
    return kCudnnSuccess;
  }

  static CudnnStatus Create(int type, CudnnDescriptor* handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    auto made = std::make_shared<Descriptor>();
    made->type = type;
    *handle = made.get();
    current_cudnn->descriptors_[*handle] = std::move(made);
    return kCudnnSuccess;
  }
  static CudnnStatus Destroy(CudnnDescriptor handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    return current_cudnn->descriptors_.erase(handle) == 1 ? kCudnnSuccess : kRefused;
  }
  static CudnnStatus Finalize(CudnnDescriptor handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    const auto own = Find(handle);
    if (own == nullptr || own->is_final) return kRefused;
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    if (own->type == kExecutionPlanDescriptor && !own->engine->can_plan) return kCudnnNotSupported;
    own->is_final = true;
    return kCudnnSuccess;
  }

  static CudnnStatus Set(CudnnDescriptor handle, int name, int type, int64_t count,
                         const void* values) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    const auto own = Find(handle);
    if (own == nullptr || own->is_final) return kRefused;
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    switch (type) {
      case kTypeDescriptor:
        return SetDescriptor(own.get(), name, *static_cast<const CudnnDescriptor*>(values));
      case kTypeHandle:
        return current_cudnn->handles_.contains(*static_cast<CudnnContext* const*>(values))
                   ? kCudnnSuccess
                   : kRefused;
      case kTypePointer: {
        const auto* const pointers = static_cast<void* const*>(values);
        own->pointers[name].assign(pointers, pointers + count);
        return kCudnnSuccess;
      }
      case kTypeFloat:
      case kTypeChar:
        return kCudnnSuccess;
      default:
        break;
    }
    std::vector<int64_t>& numbers = own->numbers[name];
    for (int64_t i = 0; i < count; ++i) {
      numbers.push_back(type == kTypeInt64 ? static_cast<const int64_t*>(values)[i]
                                           : static_cast<const int*>(values)[i]);
    }
    current_cudnn->last_set_[own->type][name] = numbers;
    return kCudnnSuccess;
  }
  static CudnnStatus SetDescriptor(Descriptor* own, int name, CudnnDescriptor handle) {
    const auto value = Find(handle);
    if (value == nullptr || !value->is_final) return kRefused;
    if (value->type == kEngineConfigDescriptor) own->engine = value->engine;
    own->attributes[name] = value;
    return kCudnnSuccess;
  }

  static CudnnStatus Get(CudnnDescriptor handle, int name, int, int64_t room, int64_t* count,
                         void* values) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    const auto own = Find(handle);
    if (own == nullptr || !own->is_final) return kRefused;
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    switch (name) {
      case kHeuristicsResults: {
        const bool falls_back = own->numbers.at(kHeuristicsMode)[0] == kHeuristicModeFallback;
        const auto& engines = falls_back ? current_cudnn->fallback_ : current_cudnn->engines_;
        *count = static_cast<int64_t>(engines.size());
        for (int64_t i = 0; i < std::min(room, *count); ++i) {
          Fill(static_cast<CudnnDescriptor*>(values)[i], &engines[static_cast<size_t>(i)],
               own->attributes.at(kHeuristicsGraph));
        }
        return kCudnnSuccess;
      }
      case kEngineConfigEngine:
        *count = 1;
        if (room > 0) Fill(*static_cast<CudnnDescriptor*>(values), own->engine, nullptr);
        return kCudnnSuccess;
      case kEngineNumericalNotes:
        *count = static_cast<int64_t>(own->engine->notes.size());
        std::ranges::copy(own->engine->notes, static_cast<int*>(values));
        return kCudnnSuccess;
      case kEngineGlobalIndex:
        *count = 1;
        *static_cast<int64_t*>(values) = own->engine->index;
        return kCudnnSuccess;
      case kPlanWorkspaceSize:
        *count = 1;
        *static_cast<int64_t*>(values) = own->engine->workspace;
        return kCudnnSuccess;
      default:
        return kRefused;
    }
  }
  static void Fill(CudnnDescriptor handle, const FakeEngine* engine,
                   std::shared_ptr<const Descriptor> graph) {
    const auto own = Find(handle);
    own->engine = engine;
    own->attributes[kHeuristicsGraph] = std::move(graph);
    own->is_final = true;
  }

  static CudnnStatus Execute(CudnnContext* handle, CudnnDescriptor plan_handle,
                             CudnnDescriptor pack_handle) {
    absl::MutexLock lock(&current_cudnn->mutex_);
    const auto plan = Find(plan_handle);
    const auto pack = Find(pack_handle);
    if (plan == nullptr || !plan->is_final || pack == nullptr || !pack->is_final) return kRefused;
    if (!current_cudnn->handles_.contains(handle)) return kRefused;
    if (current_cudnn->Fails()) return current_cudnn->failure_;
    if (current_cudnn->runs_fail_) return kRefused;
    const void* const workspace = pack->pointers.at(kVariantPackWorkspace).at(0);
    if (plan->engine->workspace > 0 && !IsOperand(workspace)) return kRefused;
    const Descriptor& graph =
        *plan->attributes.at(kPlanEngineConfig)->attributes.at(kHeuristicsGraph);
    FakeConvolution convolution;
    if (!Describe(*graph.attributes.at(kOperationGraphOperations), *pack, &convolution)) {
      return kRefused;
    }
    if (current_cudnn->clock_ != nullptr) current_cudnn->clock_->Advance(plan->engine->takes);
    const bool enqueued =
        FakeDriver::Current().Enqueue(handle->stream, [convolution] { convolution.Run(); });
    return enqueued ? kCudnnSuccess : kRefused;
  }

  // False: an operand is missing.
  static bool Describe(const Descriptor& operation, const Descriptor& pack,
                       FakeConvolution* convolution) {
    struct Names {
      int input, filter, output, convolution;
    };
    const std::map<int, Names> names = {
        {kForwardDescriptor, {kForwardInput, kForwardFilter, kForwardOutput, kForwardConvolution}},
        {kBackwardDataDescriptor,
         {kBackwardDataInput, kBackwardDataFilter, kBackwardDataOutput, kBackwardDataConvolution}},
        {kBackwardFilterDescriptor,
         {kBackwardFilterInput, kBackwardFilterFilter, kBackwardFilterOutput,
          kBackwardFilterConvolution}}};
    const Names& of = names.at(operation.type);
    const Descriptor& window = *operation.attributes.at(of.convolution);
    convolution->operation = operation.type;
    std::ranges::copy(window.numbers.at(kConvolutionStrides), convolution->stride.begin());
    std::ranges::copy(window.numbers.at(kConvolutionPaddingBefore), convolution->padding.begin());
    return Bind(*operation.attributes.at(of.input), pack, &convolution->input) &&
           Bind(*operation.attributes.at(of.filter), pack, &convolution->filter) &&
           Bind(*operation.attributes.at(of.output), pack, &convolution->output);
  }
  static bool Bind(const Descriptor& tensor, const Descriptor& pack, FakeTensor* bound) {
    const std::vector<int64_t>& ids = pack.numbers.at(kVariantPackIds);
    const auto found = std::ranges::find(ids, tensor.numbers.at(kTensorId)[0]);
    if (found == ids.end()) return false;
    void* const pointer =
        pack.pointers.at(kVariantPackPointers).at(static_cast<size_t>(found - ids.begin()));
    std::ranges::copy(tensor.numbers.at(kTensorDimensions), bound->dimensions.begin());
    std::ranges::copy(tensor.numbers.at(kTensorStrides), bound->strides.begin());
    bound->elements = {pointer, tensor.numbers.at(kTensorDataType)[0] == kDataBfloat16};
    return IsOperand(pointer);
  }
};

FakeCudnn::FakeCudnn(std::vector<FakeEngine> engines, std::vector<FakeEngine> fallback)
    : engines_(std::move(engines)), fallback_(std::move(fallback)), previous_(current_cudnn) {
  current_cudnn = this;
}

FakeCudnn::~FakeCudnn() { current_cudnn = previous_; }

const CudnnLibrary& FakeCudnn::library() {
  static const CudnnLibrary library({
      .GetErrorString = &FakeCudnnCalls::GetErrorString,
      .GetLastErrorString = &FakeCudnnCalls::GetLastErrorString,
      .GetVersion = [] { return size_t{91900}; },
      .Create = &FakeCudnnCalls::CreateHandle,
      .Destroy = &FakeCudnnCalls::DestroyHandle,
      .SetStream = &FakeCudnnCalls::SetStream,
      .Execute = &FakeCudnnCalls::Execute,
      .CreateDescriptor = &FakeCudnnCalls::Create,
      .DestroyDescriptor = &FakeCudnnCalls::Destroy,
      .Finalize = &FakeCudnnCalls::Finalize,
      .SetAttribute = &FakeCudnnCalls::Set,
      .GetAttribute = &FakeCudnnCalls::Get,
  });
  return library;
}

FakeCudnn& FakeCudnn::Current() {
  LOCKSTEP_CHECK(current_cudnn != nullptr);
  return *current_cudnn;
}

int64_t FakeCudnn::handles_with_stream() const {
  return std::ranges::count_if(handles_,
                               [](const auto& handle) { return handle.second->stream != nullptr; });
}

std::vector<int64_t> FakeCudnn::LastSet(int type, int attribute) const {
  const auto of_type = last_set_.find(type);
  if (of_type == last_set_.end()) return {};
  const auto found = of_type->second.find(attribute);
  return found == of_type->second.end() ? std::vector<int64_t>() : found->second;
}

}  // namespace lockstep::test
