// Tells ThreadSanitizer about the locks of abseil. Linked into programs under --config=tsan only.
//
// The system's libabsl_synchronization.so is not instrumented: TSan does not see its locks, and
// takes all that they guard for a race. Abseil built with -fsanitize=thread announces each
// operation with <sanitizer/tsan_interface.h>; these definitions, which hide the library's, do the
// same around them. Whatever is not here goes through what is (Await through AwaitCommon, a timeout
// through a deadline), but for reader locks with a condition, which nobody uses.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace {

// The definition that ours hides.
template <typename Function>
Function* FindHidden(const char* symbol) {
  void* found = dlsym(RTLD_NEXT, symbol);
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_mutex.cc: no %s: abseil is of another version\n", symbol);
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

using synchronization_internal::KernelTimeout;

Mutex::~Mutex() {
  static auto* const hidden = FindHidden<void(Mutex*)>("_ZN4absl7debian35MutexD1Ev");
  __tsan_mutex_destroy(this, __tsan_mutex_not_static);
  hidden(this);
}

void Mutex::Lock() {
  static auto* const hidden = FindHidden<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  __tsan_mutex_pre_lock(this, 0);
  hidden(this);
  __tsan_mutex_post_lock(this, 0, 0);
}

bool Mutex::TryLock() {
  static auto* const hidden = FindHidden<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_try_lock);
  const bool locked = hidden(this);
  __tsan_mutex_post_lock(
      this, locked ? __tsan_mutex_try_lock : __tsan_mutex_try_lock | __tsan_mutex_try_lock_failed,
      0);
  return locked;
}

void Mutex::LockWhen(const Condition& condition) {
  static auto* const hidden = FindHidden<void(Mutex*, const Condition&)>(
      "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  __tsan_mutex_pre_lock(this, 0);
  hidden(this, condition);
  __tsan_mutex_post_lock(this, 0, 0);
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static auto* const hidden = FindHidden<bool(Mutex*, const Condition&, Time)>(
      "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_mutex_pre_lock(this, 0);
  const bool met = hidden(this, condition, deadline);
  __tsan_mutex_post_lock(this, 0, 0);
  return met;
}

void Mutex::Unlock() {
  static auto* const hidden = FindHidden<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_mutex_pre_unlock(this, 0);
  hidden(this);
  __tsan_mutex_post_unlock(this, 0);
}

void Mutex::ReaderLock() {
  static auto* const hidden = FindHidden<void(Mutex*)>("_ZN4absl7debian35Mutex10ReaderLockEv");
  __tsan_mutex_pre_lock(this, __tsan_mutex_read_lock);
  hidden(this);
  __tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0);
}

void Mutex::ReaderUnlock() {
  static auto* const hidden = FindHidden<void(Mutex*)>("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  __tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock);
  hidden(this);
  __tsan_mutex_post_unlock(this, __tsan_mutex_read_lock);
}

// The wait is one piece to TSan, unlocking at its begin and locking at its end.
bool Mutex::AwaitCommon(const Condition& condition, KernelTimeout timeout) {
  static auto* const hidden = FindHidden<bool(Mutex*, const Condition&, KernelTimeout)>(
      "_ZN4absl7debian35Mutex11AwaitCommonERKNS0_9ConditionENS0_24synchronization_"
      "internal13KernelTimeoutE");
  __tsan_mutex_pre_unlock(this, 0);
  __tsan_mutex_post_unlock(this, 0);
  __tsan_mutex_pre_lock(this, 0);
  const bool met = hidden(this, condition, timeout);
  __tsan_mutex_post_lock(this, 0, 0);
  return met;
}

bool CondVar::WaitCommon(Mutex* mutex, KernelTimeout timeout) {
  static auto* const hidden = FindHidden<bool(CondVar*, Mutex*, KernelTimeout)>(
      "_ZN4absl7debian37CondVar10WaitCommonEPNS0_5MutexENS0_24synchronization_"
      "internal13KernelTimeoutE");
  __tsan_mutex_pre_unlock(mutex, 0);
  __tsan_mutex_post_unlock(mutex, 0);
  __tsan_mutex_pre_lock(mutex, 0);
  const bool timed_out = hidden(this, mutex, timeout);
  __tsan_mutex_post_lock(mutex, 0, 0);
  return timed_out;
}

// These two have atomics besides their mutex, by which they pass it.

void Notification::Notify() {
  static auto* const hidden =
      FindHidden<void(Notification*)>("_ZN4absl7debian312Notification6NotifyEv");
  // For HasBeenNotified, which is inline and loads what lies behind the mutex.
  __tsan_release(reinterpret_cast<char*>(this) + sizeof(Mutex));
  hidden(this);
}

void Notification::WaitForNotification() const {
  static auto* const hidden = FindHidden<void(const Notification*)>(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  hidden(this);
  (void)HasBeenNotified();
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static auto* const hidden = FindHidden<bool(const Notification*, Duration)>(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  return hidden(this, timeout) && HasBeenNotified();
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static auto* const hidden = FindHidden<bool(const Notification*, Time)>(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  return hidden(this, deadline) && HasBeenNotified();
}

bool BlockingCounter::DecrementCount() {
  static auto* const hidden =
      FindHidden<bool(BlockingCounter*)>("_ZN4absl7debian315BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  return hidden(this);
}

void BlockingCounter::Wait() {
  static auto* const hidden =
      FindHidden<void(BlockingCounter*)>("_ZN4absl7debian315BlockingCounter4WaitEv");
  hidden(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
