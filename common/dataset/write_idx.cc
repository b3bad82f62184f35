#include "common/dataset/write_idx.h"

#include <bit>
#include <cstdint>

#include "common/base/check.h"
#include "common/fs/atomic_file.h"

namespace lockstep {
namespace {

constexpr char kFloat32Code = 0x0D;

void AppendBigEndian(uint32_t value, std::string* bytes) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes->push_back(static_cast<char>(value >> shift));
}

}  // namespace

absl::Status WriteIdx(const std::string& path, const Shape& record,
                      absl::Span<const float> values) {
  LOCKSTEP_CHECK(record.num_elements() > 0 && values.size() % record.num_elements() == 0);
  std::string bytes = {0, 0, kFloat32Code, static_cast<char>(1 + record.rank())};
  bytes.reserve(4 * (2 + record.rank() + values.size()));
  AppendBigEndian(static_cast<uint32_t>(values.size() / record.num_elements()), &bytes);
  for (const int64_t extent : record.dims()) {
    AppendBigEndian(static_cast<uint32_t>(extent), &bytes);
  }
  for (const float value : values) AppendBigEndian(std::bit_cast<uint32_t>(value), &bytes);
  return WriteFileAtomically(path, bytes);
}

}  // namespace lockstep
