// The header of a safetensors file: which tensor lies where. The format: u64 (little-endian) N, N
// bytes of JSON, then the tensors' bytes (row-major, little-endian) without holes:
//   {"conv1/kernel":{"dtype":"F32","shape":[3,3,1,8],"data_offsets":[0,288]}, ...}
// Offsets count from the end of the JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0;  // first byte after the header
  uint64_t end = 0;    // one past the last
};

inline constexpr size_t kSafetensorsLengthBytes = 8;
inline constexpr uint64_t kLargestSafetensorsHeader = 100'000'000;
inline constexpr size_t kLongestTensorName = 4096;
// A key of the header that is no tensor: strings for whom it may concern.
inline constexpr char kSafetensorsMetadata[] = "__metadata__";

// "F32", "BF16", ... as the format spells it, and back; nullopt for what Lockstep has no type for.
absl::string_view SafetensorsName(DType dtype);
std::optional<DType> ParseSafetensorsName(absl::string_view name);

// The JSON for entries in the order of their bytes, padded with spaces to a multiple of 8.
std::string EncodeSafetensorsHeader(const std::vector<SafetensorsEntry>& entries);

// The entries in the order of their bytes. `data_bytes` is what follows the header in the file.
// DATA_LOSS says what is wrong, without the file: every rule of the format is checked (one JSON
// object, no key twice, known dtypes, offsets that leave no hole and end with the file, sizes that
// fit the shapes), and names are 1 to 4096 bytes.
absl::StatusOr<std::vector<SafetensorsEntry>> DecodeSafetensorsHeader(absl::string_view json,
                                                                      uint64_t data_bytes);

}  // namespace lockstep
