// Tensors: memory with a dtype and a shape. Tensor owns, TensorView and MutableTensorView look.
// Memory is aligned to 64 bytes and a multiple of it long, so that vector loops need no special
// edge.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/base/check.h"
#include "common/tensor/bfloat16.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep {

template <typename T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kFloat64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::kBFloat16;
  else {
    static_assert(std::is_same_v<T, uint8_t>);
    return DType::kUInt8;
  }
}

// Does not own; the memory must outlive the view.
struct TensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  const void* data = nullptr;

  int64_t num_elements() const { return shape.num_elements(); }
  size_t num_bytes() const { return static_cast<size_t>(shape.num_elements()) * SizeOf(dtype); }
  template <typename T>
  std::span<const T> as() const {
    LOCKSTEP_CHECK(DTypeOf<T>() == dtype);
    return {static_cast<const T*>(data), static_cast<size_t>(num_elements())};
  }
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte*>(data), num_bytes()};
  }
};

struct MutableTensorView {
  DType dtype = DType::kFloat32;
  Shape shape;
  void* data = nullptr;

  int64_t num_elements() const { return shape.num_elements(); }
  size_t num_bytes() const { return static_cast<size_t>(shape.num_elements()) * SizeOf(dtype); }
  template <typename T>
  std::span<T> as() const {
    LOCKSTEP_CHECK(DTypeOf<T>() == dtype);
    return {static_cast<T*>(data), static_cast<size_t>(num_elements())};
  }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data), num_bytes()}; }
  operator TensorView() const { return {dtype, shape, data}; }
};

// Owns its memory, or shares its owner; movable, not copyable (use Clone).
// Const access is thread-safe.
class Tensor {
 public:
  static constexpr size_t kAlignment = 64;
  // The memory that a tensor of so many bytes takes: whole units of kAlignment, at least one.
  static constexpr size_t RoomFor(size_t bytes) {
    return (bytes == 0 ? 1 : (bytes + kAlignment - 1) / kAlignment) * kAlignment;
  }

  Tensor() = default;  // no memory, shape [0]
  // Memory is not initialised. That there is some is a CHECK: for sizes that peers decide, TryMake.
  Tensor(DType dtype, Shape shape);
  // The same; nullopt where the system has no such memory.
  static std::optional<Tensor> TryMake(DType dtype, Shape shape);
  static Tensor Zeros(DType dtype, Shape shape);
  // In memory of somebody else's, such as a mapped segment: aligned as all memory of tensors, and
  // there for as long as `owner` (not null) is held.
  static Tensor Borrow(DType dtype, Shape shape, std::byte* memory,
                       std::shared_ptr<const void> owner);

  Tensor(Tensor&&) noexcept = default;
  Tensor& operator=(Tensor&&) noexcept = default;
  Tensor Clone() const;

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return shape_.num_elements(); }
  size_t num_bytes() const { return static_cast<size_t>(num_elements()) * SizeOf(dtype_); }
  bool is_borrowed() const { return memory_.get_deleter().owner != nullptr; }
  const void* data() const { return memory_.get(); }
  void* data() { return memory_.get(); }
  TensorView view() const { return {dtype_, shape_, memory_.get()}; }
  MutableTensorView view() { return {dtype_, shape_, memory_.get()}; }
  template <typename T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  template <typename T>
  std::span<T> as() {
    return view().as<T>();
  }
  void FillZero();

 private:
  struct Free {
    void operator()(std::byte* memory) const;
    std::shared_ptr<const void> owner;  // of borrowed memory; otherwise null
  };
  DType dtype_ = DType::kFloat32;
  Shape shape_ = Shape({0});
  std::unique_ptr<std::byte, Free> memory_;
};

// Rows [first, first + count) of a tensor with rows, which it must have (CHECK).
TensorView RowRange(const TensorView& tensor, int64_t first, int64_t count);
MutableTensorView RowRange(const MutableTensorView& tensor, int64_t first, int64_t count);

// Copies elements; dtype and number of bytes must agree (CHECK).
void Copy(TensorView from, MutableTensorView to);

}  // namespace lockstep
