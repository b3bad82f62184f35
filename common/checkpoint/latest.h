// The file of a checkpoint root that names its newest complete checkpoint.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep {

inline constexpr char kLatestFile[] = "LATEST";

// The step of the checkpoint that it names; whether that is there is not looked at. NOT_FOUND:
// there is no such file. INVALID_ARGUMENT: it names no checkpoint. Otherwise as ReadError says.
absl::StatusOr<int64_t> ReadLatest(const std::string& root);

}  // namespace lockstep
