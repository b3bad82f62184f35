#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/tensor/half_width.h"
#include "common/tensor/packed_rows.h"
#include "common/tensor/segmented_reader.h"
#include "ps/shard/catalog.h"

namespace lockstep::ps {
namespace {

// Calls `check(element, position)` for each of `count` elements that lie in the payload from byte
// `from` on; position counts from `first`.
template <typename T>
absl::Status ForEachElement(SegmentedReader* payload, uint64_t from, uint64_t count, uint64_t first,
                            absl::FunctionRef<absl::Status(T, uint64_t)> check) {
  std::array<T, 512> block;
  while (count > 0) {
    const uint64_t size = std::min<uint64_t>(count, block.size());
    LOCKSTEP_CHECK(payload->CopyFrom(from, std::as_writable_bytes(std::span(block).first(size))));
    for (uint64_t i = 0; i < size; ++i) LOCKSTEP_RETURN_IF_ERROR(check(block[i], first + i));
    from += size * sizeof(T);
    first += size;
    count -= size;
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const CatalogEntry& entry, uint64_t first, uint64_t count, uint64_t from,
                          SegmentedReader* payload) {
  const int64_t num_rows = entry.shape.dim(0);
  return ForEachElement<int64_t>(
      payload, from, count, first, [&](int64_t row, uint64_t slice) -> absl::Status {
        if (row >= 0 && row < num_rows) return absl::OkStatus();
        return absl::InvalidArgumentError(absl::StrCat(Quoted(entry), ": slice ", slice,
                                                       ": expected a row in [0, ", num_rows,
                                                       "), got ", row));
      });
}

absl::Status Diverged(const CatalogEntry& entry, uint64_t element, double number) {
  return WithExitCode(
      absl::InvalidArgumentError(absl::StrCat(
          Quoted(entry), ": element ", element, " of the gradient: expected a finite value, got ",
          number, ": training diverges, and the job refuses that (sync.non_finite). Remedy: lower ",
          "the learning rate, limit the gradient (optimizer.clipping), or check the data")),
      ExitCode::kDiverged);
}

template <typename T, typename Number>
absl::Status CheckFinite(const CatalogEntry& entry, uint64_t begin, uint64_t end, uint64_t from,
                         SegmentedReader* payload) {
  if (begin % sizeof(T) != 0 || end % sizeof(T) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Quoted(entry), ": expected pieces of whole elements, got bytes [", begin, ", ",
                     end, ") of the values; this job refuses values that are not finite"));
  }
  return ForEachElement<T>(payload, from, (end - begin) / sizeof(T), begin / sizeof(T),
                           [&](T value, uint64_t element) -> absl::Status {
                             const auto number = static_cast<Number>(value);
                             if (std::isfinite(number)) return absl::OkStatus();
                             return Diverged(entry, element, number);
                           });
}

absl::Status CheckFinite(const CatalogEntry& entry, DType type, uint64_t begin, uint64_t end,
                         uint64_t from, SegmentedReader* payload) {
  switch (type) {
    case DType::kFloat16:
      return CheckFinite<Float16, float>(entry, begin, end, from, payload);
    case DType::kBFloat16:
      return CheckFinite<BFloat16, float>(entry, begin, end, from, payload);
    case DType::kFloat32:
      return CheckFinite<float, float>(entry, begin, end, from, payload);
    default:
      return CheckFinite<double, double>(entry, begin, end, from, payload);
  }
}

}  // namespace

absl::Status CheckContents(const Catalog& catalog, const std::vector<size_t>& variables,
                           const PushArguments& arguments, bool refuse_non_finite) {
  SegmentedReader payload(arguments.tensors.segments());
  uint64_t position = 0;  // of the piece in the payload
  for (size_t i = 0; i < arguments.pieces.size(); ++i) {
    const PushPiece& piece = arguments.pieces[i];
    const CatalogEntry& entry = catalog[variables[i]];
    const uint64_t begin = piece.offset;
    const uint64_t end = piece.offset + piece.size;
    const uint64_t index_bytes = static_cast<uint64_t>(piece.rows) * kRowIndexBytes;
    if (begin < index_bytes) {
      LOCKSTEP_RETURN_IF_ERROR(CheckIndices(entry, begin / kRowIndexBytes,
                                            (std::min(end, index_bytes) - begin) / kRowIndexBytes,
                                            position, &payload));
    }
    if (refuse_non_finite && end > index_bytes) {
      const uint64_t first = std::max(begin, index_bytes);
      const uint64_t from = position + (first - begin);
      LOCKSTEP_RETURN_IF_ERROR(
          CheckFinite(entry, piece.dtype, first - index_bytes, end - index_bytes, from, &payload));
    }
    position += piece.size;
  }
  return absl::OkStatus();
}

}  // namespace lockstep::ps
