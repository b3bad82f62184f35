// Early return on a status that is not OK, for functions that return absl::Status or
// absl::StatusOr.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LOCKSTEP_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (absl::Status lockstep_status_ = (expression); !lockstep_status_.ok()) \
      return lockstep_status_;                                                \
  } while (false)

#define LOCKSTEP_CONCAT_INNER(a, b) a##b
#define LOCKSTEP_CONCAT(a, b) LOCKSTEP_CONCAT_INNER(a, b)

// LOCKSTEP_ASSIGN_OR_RETURN(auto value, Function()): declares or assigns value, or returns the
// error.
#define LOCKSTEP_ASSIGN_OR_RETURN(target, expression) \
  LOCKSTEP_ASSIGN_OR_RETURN_INNER(LOCKSTEP_CONCAT(lockstep_or_, __LINE__), target, expression)
#define LOCKSTEP_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                       \
  if (!holder.ok()) return std::move(holder).status();              \
  target = *std::move(holder)
