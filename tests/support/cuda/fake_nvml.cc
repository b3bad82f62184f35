#include "tests/support/cuda/fake_nvml.h"

#include "common/base/check.h"

namespace lockstep::test {

using namespace worker::cuda;  // the names of NVML's interface

namespace {

constexpr NvmlResult kNotSupported = 3;
constexpr NvmlResult kRefused = 999;

FakeNvml* current = nullptr;

}  // namespace

struct FakeNvmlCalls {
  static NvmlResult Init() { return current->Enter("nvmlInit"); }
  static const char* ErrorString(NvmlResult) { return "what NVML says"; }
  static NvmlResult DeviceByPciBusId(const char* id, NvmlDeviceHandle* device) {
    if (std::string(id) != FakeNvml::kPciBusId) return kNotSupported;
    *device = reinterpret_cast<NvmlDeviceHandle>(current);
    return current->Enter("nvmlDeviceGetHandleByPciBusId");
  }
  static NvmlResult UtilizationRates(NvmlDeviceHandle, NvmlUtilization* rates) {
    rates->gpu = FakeNvml::kUtilization;
    return current->Enter("nvmlDeviceGetUtilizationRates");
  }
  static NvmlResult SupportedEventTypes(NvmlDeviceHandle, unsigned long long* types) {
    *types = current->supported_;
    return current->Enter("nvmlDeviceGetSupportedEventTypes");
  }
  static NvmlResult EventSetCreate(NvmlEventSet* set) {
    const NvmlResult result = current->Enter("nvmlEventSetCreate");
    if (result != kNvmlSuccess) return result;
    ++current->sets_;
    *set = reinterpret_cast<NvmlEventSet>(current);
    return kNvmlSuccess;
  }
  static NvmlResult RegisterEvents(NvmlDeviceHandle, unsigned long long types, NvmlEventSet) {
    if ((types & ~current->supported_) != 0) return kNotSupported;
    current->registered_ = types;
    return current->Enter("nvmlDeviceRegisterEvents");
  }
  static NvmlResult EventSetWait(NvmlEventSet, NvmlEventData* event, unsigned int) {
    absl::MutexLock lock(&current->mutex_);
    current->handled_ = current->taken_;
    if (current->events_.empty()) return kNvmlTimeout;
    ++current->taken_;
    const auto [result, data] = current->events_.front();
    current->events_.pop_front();
    *event = data;
    return result;
  }
  static NvmlResult EventSetFree(NvmlEventSet) {
    --current->sets_;
    return kNvmlSuccess;
  }
};

NvmlFunctions FakeNvml::Functions() {
  NvmlFunctions functions;
#define LOCKSTEP_FILL_FUNCTION(name, result, symbol, parameters) \
  functions.name = &FakeNvmlCalls::name;
  LOCKSTEP_NVML_FUNCTIONS(LOCKSTEP_FILL_FUNCTION)
#undef LOCKSTEP_FILL_FUNCTION
  return functions;
}

FakeNvml::FakeNvml(std::string refused, unsigned long long supported)
    : refused_(std::move(refused)), supported_(supported), library_([this] {
        LOCKSTEP_CHECK(current == nullptr);
        current = this;
        return *NvmlLibrary::Create(Functions());
      }()) {}

FakeNvml::~FakeNvml() { current = nullptr; }

NvmlResult FakeNvml::Enter(const char* call) const {
  return refused_ == call ? kRefused : kNvmlSuccess;
}

void FakeNvml::Add(unsigned long long type, unsigned long long data) {
  absl::MutexLock lock(&mutex_);
  ++added_;
  events_.push_back({kNvmlSuccess, {.type = type, .data = data}});
}

void FakeNvml::AddResult(NvmlResult result) {
  absl::MutexLock lock(&mutex_);
  ++added_;
  events_.push_back({result, {}});
}

void FakeNvml::AwaitHandled() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &FakeNvml::IsHandled));
}

}  // namespace lockstep::test
