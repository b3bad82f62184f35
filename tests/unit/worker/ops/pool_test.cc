#include "worker/ops/pool.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;
using reference::Sliding;

struct PoolCase {
  int64_t batch, height, width, channels;
  std::array<int64_t, 2> window = {2, 2};
  std::array<int64_t, 2> stride = {2, 2};
  bool same = false;
};

Sliding SlidingOf(const PoolCase& c, int axis) {
  const int64_t input = axis == 0 ? c.height : c.width;
  return c.same ? Sliding::Same(input, c.window[axis], c.stride[axis])
                : Sliding::Valid(input, c.window[axis], c.stride[axis]);
}

PoolOptions OptionsOf(const PoolCase& c, PoolKind kind) {
  PoolOptions options;
  options.batch = c.batch;
  options.kind = kind;
  options.input = {c.height, c.width, c.channels};
  options.output = {SlidingOf(c, 0).output, SlidingOf(c, 1).output, c.channels};
  options.window.extent = c.window;
  options.window.stride = c.stride;
  for (int axis : {0, 1}) {
    const Sliding sliding = SlidingOf(c, axis);
    const int64_t input = axis == 0 ? c.height : c.width;
    options.window.pad_before[axis] = sliding.pad_before;
    options.window.pad_after[axis] = std::max<int64_t>(
        0, (sliding.output - 1) * c.stride[axis] + c.window[axis] - input - sliding.pad_before);
  }
  return options;
}

// No two elements of a window are equal, in bfloat16 neither: a maximum that is there twice has no
// derivative.
Array DistinctInWindows(const std::vector<int64_t>& dims) {
  constexpr int64_t kValues = 251;  // a prime number
  Array array(dims);
  for (int64_t i = 0; i < array.size(); ++i) {
    array.values[i] = static_cast<double>(i * 37 % kValues - kValues / 2) / 128;
  }
  return array;
}

void CheckPools(const PoolCase& c) {
  INFO("batch " << c.batch << ", " << c.height << "x" << c.width << "x" << c.channels << ", window "
                << c.window[0] << "x" << c.window[1] << ", stride " << c.stride[0] << "x"
                << c.stride[1] << (c.same ? ", SAME" : ", VALID"));
  TestOps ops(2);
  for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
    const std::unique_ptr<Op> op = Made(ops.Make(OptionsOf(c, kind)));
    CheckOp(ops, *op, {DistinctInWindows({c.batch, c.height, c.width, c.channels})}, {}, 0,
            [&](const std::vector<Array>& x, const std::vector<Array>&) {
              return kind == PoolKind::kMax
                         ? reference::MaxPool(x[0], SlidingOf(c, 0), SlidingOf(c, 1))
                         : reference::AveragePool(x[0], SlidingOf(c, 0), SlidingOf(c, 1));
            });
  }
}
TEST_CASE("pools agree with their references, forward and backward") {
  CheckPools({.batch = 2, .height = 8, .width = 8, .channels = 16});
  CheckPools({.batch = 3, .height = 7, .width = 5, .channels = 3});
  CheckPools({.batch = 1, .height = 1, .width = 1, .channels = 1, .window = {1, 1}});
  for (bool same : {false, true}) {
    // Windows that overlap, and windows with pixels between them.
    CheckPools({.batch = 2,
                .height = 7,
                .width = 8,
                .channels = 5,
                .window = {3, 2},
                .stride = {1, 1},
                .same = same});
    CheckPools({.batch = 2,
                .height = 8,
                .width = 9,
                .channels = 17,
                .window = {3, 3},
                .stride = {2, 2},
                .same = same});
    CheckPools({.batch = 2,
                .height = 9,
                .width = 7,
                .channels = 4,
                .window = {2, 1},
                .stride = {3, 4},
                .same = same});
  }
  CheckPools({.batch = 2,
              .height = 3,
              .width = 2,
              .channels = 2,
              .window = {5, 4},
              .stride = {2, 2},
              .same = true});
}

TEST_CASE("a maximum of padding and negative numbers is the negative number") {
  TestOps ops(1);
  const PoolCase c{.batch = 1, .height = 3, .width = 3, .channels = 1, .same = true};
  Array x({1, 3, 3, 1});
  for (int64_t i = 0; i < 9; ++i) x.values[i] = -1.0 - static_cast<double>(i);
  OpRun run(ops, {x}, {}, {1, 2, 2, 1});
  const std::unique_ptr<Op> op = Made(ops.Make(OptionsOf(c, PoolKind::kMax)));
  CHECK(run.Forward(*op, Mode::kTraining).values == std::vector<double>{-1, -3, -7, -9});
}

TEST_CASE("a pool's result is a NaN where its window has one") {
  TestOps ops(2);
  for (const PoolCase& c : {PoolCase{2, 8, 8, 9}, PoolCase{2, 8, 7, 9, {3, 3}, {2, 2}, true},
                            PoolCase{2, 9, 7, 9, {2, 1}, {3, 4}}}) {
    Array x = DistinctInWindows({2, c.height, c.width, 9});
    for (int64_t i = 0; i < x.size(); i += 131) x.values[i] = std::nan("");
    // A sum has one where any of its terms is one.
    const Array sums = reference::AveragePool(x, SlidingOf(c, 0), SlidingOf(c, 1));
    for (PoolKind kind : {PoolKind::kMax, PoolKind::kAverage}) {
      OpRun run(ops, {x}, {}, sums.dims);
      const Array y = run.Forward(*Made(ops.Make(OptionsOf(c, kind))), Mode::kTraining);
      int64_t wrong = 0;
      for (int64_t i = 0; i < y.size(); ++i) {
        wrong += std::isnan(y.values[i]) != std::isnan(sums.values[i]);
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("of equal maxima the first takes the gradient") {
  TestOps ops(1);
  const PoolCase c{.batch = 1, .height = 2, .width = 2, .channels = 3};
  Array x({1, 2, 2, 3});
  OpRun run(ops, {x}, {}, {1, 1, 1, 3});
  const std::unique_ptr<Op> op = Made(ops.Make(OptionsOf(c, PoolKind::kMax)));
  run.Forward(*op, Mode::kTraining);
  Array gradient({1, 1, 1, 3});
  gradient.values = {1, 2, 3};
  run.Backward(*op, gradient);
  CHECK(reference::ToArray(run.input_gradients[0].view()).values ==
        std::vector<double>{1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

// As a model without padding has it. Inference, so that nothing is allocated.
PoolOptions LongAxis(int axis, int64_t input, int64_t window, int64_t stride) {
  PoolOptions options;
  options.batch = 1;
  options.training = false;
  (axis == 0 ? options.input.height : options.input.width) = input;
  (axis == 0 ? options.output.height : options.output.width) = (input - window) / stride + 1;
  options.window.extent[axis] = window;
  options.window.stride[axis] = stride;
  return options;
}

TEST_CASE("a pool whose axis cannot be counted in 32 bits with its padding is refused") {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  TestOps ops(1);
  for (const int axis : {0, 1}) {
    CAPTURE(axis);
    CHECK(ops.Make(LongAxis(axis, kMost - 3, 3, 2)).ok());
    for (const auto& [window, stride] : {std::pair<int64_t, int64_t>{3, 2}, {2, 3}}) {
      CHECK(ops.Make(LongAxis(axis, kMost - 2, window, stride)).status() ==
            absl::UnimplementedError(absl::StrCat(
                "op \"pool\" takes fewer than 2^31 places along an axis of the image with its "
                "padding and a window or stride, got a ",
                axis == 0 ? "height" : "width",
                " of 2147483645 with padding of 0 and 0, a window of ", window, " and a stride of ",
                stride, "; use a smaller image, window or stride")));
    }
    PoolOptions padded = LongAxis(axis, 1, 1, 1);
    padded.window.extent[axis] = int64_t{1} << 29;
    padded.window.pad_before[axis] = (int64_t{1} << 29) - 1;
    padded.window.pad_after[axis] = (int64_t{1} << 30) + 1;
    CHECK(absl::IsUnimplemented(ops.Make(padded).status()));
  }
}

}  // namespace
}  // namespace lockstep::worker
