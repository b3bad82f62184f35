// Reads safetensors files: see safetensors_header.h for the format. Tensors are streamed into
// memory of the caller's; a checksum is taken on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/safetensors_header.h"
#include "common/fs/input_file.h"

namespace lockstep {

// An open file whose header is sound. Movable; const calls are thread-safe.
class SafetensorsFile {
 public:
  // DATA_LOSS naming the file and what is wrong with it; errors as ReadError says.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  // In the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  uint64_t bytes() const { return file_.size(); }

  // Fills `value`, exactly the size of the tensor (CHECK), and returns the CRC32C of what was read.
  absl::StatusOr<uint32_t> Read(const SafetensorsEntry& entry, std::span<std::byte> value) const;
  // Fills `value` with bytes [offset, offset + value.size()) of the tensor, which it must have
  // (CHECK), and returns the CRC32C of all of it, which is read once.
  absl::StatusOr<uint32_t> ReadPart(const SafetensorsEntry& entry, uint64_t offset,
                                    std::span<std::byte> value) const;
  // The CRC32C alone.
  absl::StatusOr<uint32_t> Checksum(const SafetensorsEntry& entry) const;

 private:
  SafetensorsFile(InputFile file, std::vector<SafetensorsEntry> entries, uint64_t data_begin);

  InputFile file_;
  std::vector<SafetensorsEntry> entries_;
  uint64_t data_begin_ = 0;
};

}  // namespace lockstep
