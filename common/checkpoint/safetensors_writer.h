// Writes safetensors files: see safetensors_header.h for the format.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"

namespace lockstep {

// Writes `path` atomically: tensors of wider types first, equal ones by name, as the format's own
// library does. Returns the record of the file, tensors in the order of their bytes.
// INVALID_ARGUMENT for a name that is not 1 to 4096 printable ASCII characters, is "__metadata__"
// or is given twice; otherwise errors as WriteError says, or of `check` (AtomicFile).
absl::StatusOr<ShardFile> WriteSafetensors(const std::string& path,
                                           const std::vector<NamedTensor>& tensors,
                                           const PublishCheck& check = nullptr);

}  // namespace lockstep
