#include "common/tensor/tensor.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("Memory is aligned for vector loops") {
  for (int64_t elements : {0, 1, 15, 16, 17, 1000}) {
    const Tensor tensor(DType::kFloat32, Shape({elements}));
    CHECK(reinterpret_cast<uintptr_t>(tensor.data()) % Tensor::kAlignment == 0);
    CHECK(tensor.num_bytes() == 4 * elements);
  }
}

TEST_CASE("Memory that the system does not have is no tensor, and no end of the process") {
  CHECK_FALSE(Tensor::TryMake(DType::kFloat32, Shape({int64_t{1} << 45})).has_value());
  const std::optional<Tensor> made = Tensor::TryMake(DType::kFloat32, Shape({3}));
  REQUIRE(made.has_value());
  CHECK(made->num_bytes() == 12);
}

TEST_CASE("A fresh zero tensor is zero and a clone is a copy") {
  Tensor tensor = Tensor::Zeros(DType::kInt64, Shape({2, 3}));
  for (int64_t v : tensor.as<int64_t>()) CHECK(v == 0);
  tensor.as<int64_t>()[4] = 7;
  const Tensor clone = tensor.Clone();
  tensor.as<int64_t>()[4] = 8;
  CHECK(clone.as<int64_t>()[4] == 7);
  CHECK(clone.shape() == Shape({2, 3}));
  CHECK(clone.dtype() == DType::kInt64);
  tensor.FillZero();
  CHECK(tensor.as<int64_t>()[4] == 0);
}

TEST_CASE("Views look at the tensor's own memory") {
  Tensor tensor = Tensor::Zeros(DType::kFloat64, Shape({2}));
  MutableTensorView view = tensor.view();
  view.as<double>()[1] = 2.5;
  const TensorView look = view;
  CHECK(look.as<double>()[1] == 2.5);
  CHECK(look.num_bytes() == 16);
  CHECK(look.data == tensor.data());
}

TEST_CASE("A default-made tensor is empty") {
  const Tensor tensor;
  CHECK(tensor.num_elements() == 0);
  CHECK(tensor.view().bytes().empty());
  CHECK(tensor.Clone().num_elements() == 0);
}

TEST_CASE("A range of rows looks at the tensor's own memory") {
  Tensor tensor(DType::kInt32, {3, 2});
  std::ranges::copy(std::vector<int32_t>{0, 1, 2, 3, 4, 5}, tensor.as<int32_t>().begin());
  const MutableTensorView rows = RowRange(tensor.view(), 1, 2);
  CHECK(rows.shape == Shape({2, 2}));
  CHECK(rows.as<int32_t>()[0] == 2);
  rows.as<int32_t>()[3] = 50;
  CHECK(std::as_const(tensor).as<int32_t>()[5] == 50);
  const TensorView last = RowRange(std::as_const(tensor).view(), 2, 1);
  CHECK(last.as<int32_t>()[0] == 4);
  CHECK(RowRange(tensor.view(), 3, 0).num_elements() == 0);
  CHECK(RowRange(tensor.view(), 0, 3).bytes().data() == tensor.view().bytes().data());
}

TEST_CASE("Copy moves bytes between shapes of one size") {
  Tensor from(DType::kFloat32, Shape({6}));
  std::fill(from.as<float>().begin(), from.as<float>().end(), 1.5f);
  Tensor to = Tensor::Zeros(DType::kFloat32, Shape({2, 3}));
  Copy(from.view(), to.view());
  CHECK(to.as<float>()[5] == 1.5f);
}

}  // namespace
}  // namespace lockstep
