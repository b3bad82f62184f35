// Callbacks that receive the result of an asynchronous call.
#pragma once

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep {

// Called exactly once, never under a lock, possibly before the call that takes it returns.
template <typename T>
using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;
// The same for a call without a result.
using StatusCallback = absl::AnyInvocable<void(absl::Status)>;

}  // namespace lockstep
