// IDX files, the format of MNIST: big-endian, magic 00 00 <type> <dimensions>, the extents as
// uint32, then the elements row-major. Plain or gzip.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/dataset/records.h"

namespace lockstep {

struct IdxHeader {
  ElementType type = ElementType::kUInt8;
  int64_t count = 0;  // the first extent
  Shape shape;        // the others: the shape of one record
};

// Reads the header alone; a plain file's size is checked against it. DATA_LOSS (file, offset,
// expected, got) for a truncated header, a wrong magic number, no records, extents whose product no
// file can have; otherwise as ByteSource.
absl::StatusOr<IdxHeader> ReadIdxHeader(const std::string& path);

// Reads all of the file. In addition DATA_LOSS for missing or trailing bytes, and for a float that
// is not finite as float32; errors as CheckRoomForData.
absl::StatusOr<Records> ReadIdx(const std::string& path);

}  // namespace lockstep
