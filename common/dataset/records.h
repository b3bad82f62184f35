// Records of one shape and element type in memory, as compact as the file has them.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "common/base/check.h"
#include "common/dataset/element_type.h"
#include "common/tensor/shape.h"

namespace lockstep {

// What the records of one data set have in common.
struct RecordKind {
  ElementType type = ElementType::kUInt8;
  Shape shape;  // of one record

  friend bool operator==(const RecordKind&, const RecordKind&) = default;
};

// Movable value; the bytes are the elements in this machine's byte order, row-major.
struct Records {
  ElementType type = ElementType::kUInt8;
  Shape shape;  // of one record
  int64_t count = 0;
  std::vector<std::byte> bytes;

  RecordKind kind() const { return {type, shape}; }
};

// Calls visit(absl::Span<const T>) with all elements, T being the C++ type of records.type.
template <typename Visit>
auto VisitElements(const Records& records, Visit&& visit) {
  const auto call = [&]<typename T>(T) {
    return visit(absl::Span<const T>(reinterpret_cast<const T*>(records.bytes.data()),
                                     records.bytes.size() / sizeof(T)));
  };
  switch (records.type) {
    case ElementType::kUInt8:
      return call(uint8_t{});
    case ElementType::kInt8:
      return call(int8_t{});
    case ElementType::kInt16:
      return call(int16_t{});
    case ElementType::kInt32:
      return call(int32_t{});
    case ElementType::kFloat32:
      return call(float{});
    case ElementType::kFloat64:
      return call(double{});
  }
  LOCKSTEP_CHECK(false);
}

}  // namespace lockstep
