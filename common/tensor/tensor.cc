#include "common/tensor/tensor.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace lockstep {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// Passes over large tensors wait for the translation of addresses, too: less with huge pages.
void* LargeMemory(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kHugePage, Tensor::RoomFor(bytes)) != 0) return nullptr;
  // Advice: where it is not taken the memory is as good, only slower.
  madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

}  // namespace

std::optional<Tensor> Tensor::TryMake(DType dtype, Shape shape) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  const size_t bytes = tensor.num_bytes();
  void* const memory =
      bytes >= kHugePage ? LargeMemory(bytes) : std::aligned_alloc(kAlignment, RoomFor(bytes));
  if (memory == nullptr) return std::nullopt;
  tensor.memory_.reset(static_cast<std::byte*>(memory));
  return tensor;
}

Tensor::Tensor(DType dtype, Shape shape) {
  std::optional<Tensor> made = TryMake(dtype, std::move(shape));
  LOCKSTEP_CHECK(made.has_value());
  *this = *std::move(made);
}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  Tensor tensor(dtype, std::move(shape));
  tensor.FillZero();
  return tensor;
}

Tensor Tensor::Borrow(DType dtype, Shape shape, std::byte* memory,
                      std::shared_ptr<const void> owner) {
  LOCKSTEP_CHECK(memory != nullptr && owner != nullptr);
  LOCKSTEP_CHECK(reinterpret_cast<uintptr_t>(memory) % kAlignment == 0);
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.memory_ = {memory, Free{std::move(owner)}};
  return tensor;
}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_);
  Copy(view(), copy.view());
  return copy;
}

void Tensor::FillZero() {
  if (num_bytes() != 0) std::memset(memory_.get(), 0, num_bytes());
}

void Tensor::Free::operator()(std::byte* memory) const {
  if (owner == nullptr) std::free(memory);
}

TensorView RowRange(const TensorView& tensor, int64_t first, int64_t count) {
  LOCKSTEP_CHECK(tensor.shape.rank() > 0 && first >= 0 && count >= 0);
  const int64_t rows = tensor.shape.dim(0);
  LOCKSTEP_CHECK(first <= rows && count <= rows - first);
  absl::InlinedVector<int64_t, Shape::kMaxRank> dims(tensor.shape.dims().begin(),
                                                     tensor.shape.dims().end());
  dims[0] = count;
  const size_t row_bytes = rows == 0 ? 0 : tensor.num_bytes() / static_cast<size_t>(rows);
  return {tensor.dtype, Shape(dims),
          static_cast<const std::byte*>(tensor.data) + static_cast<size_t>(first) * row_bytes};
}

MutableTensorView RowRange(const MutableTensorView& tensor, int64_t first, int64_t count) {
  const TensorView range = RowRange(TensorView(tensor), first, count);
  return {range.dtype, range.shape, const_cast<void*>(range.data)};
}

void Copy(TensorView from, MutableTensorView to) {
  LOCKSTEP_CHECK(from.dtype == to.dtype && from.num_bytes() == to.num_bytes());
  if (from.num_bytes() != 0) std::memcpy(to.data, from.data, from.num_bytes());
}

}  // namespace lockstep
