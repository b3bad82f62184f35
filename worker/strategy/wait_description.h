// WaitDescription is a text for people about what a strategy waits for.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/base/quantity.h"

namespace lockstep::worker {

// Thread-safe. Set allocates nothing: it is called several times in every step.
class WaitDescription {
 public:
  // `what` is a literal.
  void Set(const char* what) { Set(what, kNoStep); }
  // Reads "<what> (step 1,200)".
  void Set(const char* what, GlobalStep step) {
    absl::MutexLock lock(&mutex_);
    what_ = what;
    step_ = step;
  }
  void Clear() { Set(""); }

  std::string Describe() const {
    absl::MutexLock lock(&mutex_);
    if (step_ == kNoStep) return what_;
    return absl::StrCat(what_, " (step ", WithCommas(static_cast<uint64_t>(step_.value())), ")");
  }

 private:
  static constexpr GlobalStep kNoStep = GlobalStep(-1);

  mutable absl::Mutex mutex_;
  const char* what_ ABSL_GUARDED_BY(mutex_) = "";
  GlobalStep step_ ABSL_GUARDED_BY(mutex_) = kNoStep;
};

}  // namespace lockstep::worker
