#include "worker/strategy/replicated/row_share.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "common/tensor/packed_rows.h"
#include "common/update/sparse_sum.h"

namespace lockstep::worker {
namespace {

int64_t Aligned(int64_t bytes) {
  return static_cast<int64_t>(Tensor::RoomFor(static_cast<size_t>(bytes)));
}

}  // namespace

RowShare::RowShare(const WholeVariable& table, int64_t most_rows)
    : dtype_(table.dtype),
      shape_(table.shape),
      most_rows_(most_rows),
      values_at_(Aligned((1 + most_rows) * static_cast<int64_t>(sizeof(int64_t)))),
      num_bytes_(values_at_ +
                 Aligned(most_rows * static_cast<int64_t>(RowBytes(table.dtype, table.shape)))) {}

MutableTensorView RowShare::Begin(absl::Span<const int64_t> rows, std::byte* share) const {
  const auto count = static_cast<int64_t>(rows.size());
  LOCKSTEP_CHECK(count <= most_rows_);
  auto* const to = reinterpret_cast<int64_t*>(share);
  *to = count;
  std::ranges::copy(rows, to + 1);
  return {dtype_, WithRows(shape_, count), share + values_at_};
}

absl::Status RowShare::Check(const std::byte* share) const {
  const auto* const from = reinterpret_cast<const int64_t*>(share);
  if (*from < 0 || *from > most_rows_) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most ", most_rows_, " rows, got ", *from));
  }
  int64_t last = -1;
  for (const int64_t row : std::span(from + 1, static_cast<size_t>(*from))) {
    if (row <= last || row >= shape_.dim(0)) {
      return absl::InvalidArgumentError(absl::StrCat("expected rows in ascending order below ",
                                                     shape_.dim(0), ", got ", row, " after ",
                                                     last));
    }
    last = row;
  }
  return absl::OkStatus();
}

IndexedSlicesView RowShare::View(const std::byte* share) const {
  const auto* const from = reinterpret_cast<const int64_t*>(share);
  return {{from + 1, static_cast<size_t>(*from)},
          {dtype_, WithRows(shape_, *from), share + values_at_}};
}

IndexedSlices MergeShares(const RowShare& share, const TensorView& gathered, bool average) {
  const int64_t shares = gathered.num_elements() / share.num_elements();
  const auto* const begin = static_cast<const std::byte*>(gathered.data);
  SparseSum sum(share.View(begin));
  for (int64_t i = 1; i < shares; ++i) sum.Add(share.View(begin + i * share.num_bytes()));
  IndexedSlices merged = sum.Finish().sum;
  if (!average || shares == 1) return merged;
  const std::vector<int> divisors(merged.indices.size(), static_cast<int>(shares));
  Tensor& values = merged.values;
  DivideRows(values.dtype(), SliceWidth(std::as_const(values).view()), values.data(), divisors);
  return merged;
}

}  // namespace lockstep::worker
