#include "common/tensor/row_means.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/tensor/vector_loop.h"

namespace lockstep {

std::optional<RowMeans> RowMeans::Of(absl::Span<const IndexedSlicesView> gradients) {
  LOCKSTEP_CHECK(!gradients.empty());
  const TensorView& first = gradients.front().values;
  LOCKSTEP_CHECK(first.dtype == DType::kFloat32 || first.dtype == DType::kFloat64);
  RowMeans means(first.dtype, SliceWidth(first));
  for (const IndexedSlicesView& gradient : gradients) {
    LOCKSTEP_CHECK(gradient.values.dtype == means.dtype_);
    LOCKSTEP_CHECK(SliceWidth(gradient.values) == means.width_);
    if (!IsSortedAndMerged(gradient.indices)) return std::nullopt;
  }
  means.Merge(gradients);
  return means;
}

// Gradients are few: the lowest row is looked for among all of them.
void RowMeans::Merge(absl::Span<const IndexedSlicesView> gradients) {
  struct Source {
    const int64_t* row;
    const int64_t* end;
    const std::byte* slice;
  };
  std::vector<Source> sources;
  size_t total = 0;
  for (const IndexedSlicesView& gradient : gradients) {
    total += gradient.indices.size();
    sources.push_back({gradient.indices.data(), gradient.indices.data() + gradient.indices.size(),
                       static_cast<const std::byte*>(gradient.values.data)});
  }
  rows_.reserve(total);
  ends_.reserve(total);
  slices_.reserve(total);
  const size_t row_bytes = width_ * SizeOf(dtype_);
  while (slices_.size() < total) {
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (const Source& source : sources) {
      if (source.row != source.end) lowest = std::min(lowest, *source.row);
    }
    for (Source& source : sources) {
      if (source.row == source.end || *source.row != lowest) continue;
      slices_.push_back(source.slice);
      source.slice += row_bytes;
      ++source.row;
    }
    rows_.push_back(lowest);
    ends_.push_back(slices_.size());
  }
}

void RowMeans::Take(size_t begin, size_t end, void* means) const {
  LOCKSTEP_CHECK(begin <= end && end <= rows_.size());
  if (dtype_ == DType::kFloat32) {
    TakeAs(begin, end, static_cast<float*>(means));
  } else {
    TakeAs(begin, end, static_cast<double*>(means));
  }
}

template <typename T>
void RowMeans::TakeAs(size_t begin, size_t end, T* to) const {
  size_t slice = begin == 0 ? 0 : ends_[begin - 1];
  for (size_t row = begin; row < end; ++row, to += width_) {
    const size_t count = ends_[row] - slice;
    if (count == 1) {
      if (width_ > 0) std::memcpy(to, slices_[slice], width_ * sizeof(T));
    } else {
      ForEachElement(width_, [to, a = static_cast<const T*>(slices_[slice]),
                              b = static_cast<const T*>(slices_[slice + 1])](size_t i) {
        to[i] = a[i] + b[i];
      });
      for (size_t k = 2; k < count; ++k) {
        ForEachElement(width_, [to, term = static_cast<const T*>(slices_[slice + k])](size_t i) {
          to[i] = to[i] + term[i];
        });
      }
      ForEachElement(width_, [to, by = static_cast<T>(count)](size_t i) { to[i] = to[i] / by; });
    }
    slice = ends_[row];
  }
}

}  // namespace lockstep
