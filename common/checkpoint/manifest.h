// manifest.json, the file that makes a checkpoint exist: a Manifest as JSON, with a CRC32C over the
// rest of it so that a damaged or edited one is not believed. docs/checkpoint.md lists its fields.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/checkpoint.h"

namespace lockstep {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr size_t kLargestManifest = size_t{1} << 28;

std::string EncodeManifest(const Manifest& manifest);

// DATA_LOSS says what is wrong, without the file: every field must be there, of its type, and no
// other; files must be names inside the folder; no tensor and no file may come twice.
// FAILED_PRECONDITION for a version of the format that this build does not know.
absl::StatusOr<Manifest> DecodeManifest(absl::string_view json);

}  // namespace lockstep
