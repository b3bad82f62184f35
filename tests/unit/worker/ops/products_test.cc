// Convolution, and what it has in common with dense.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/ops/conv2d.h"
#include "worker/ops/dense.h"

namespace lockstep::worker {
namespace {

using reference::Array;
using reference::Sliding;

struct ConvCase {
  int64_t batch, height, width, channels, filters;
  std::array<int64_t, 2> kernel = {3, 3};
  std::array<int64_t, 2> stride = {1, 1};
  bool same = true;
  bool bias = true;
  bool relu = false;
};

Sliding SlidingOf(const ConvCase& c, int axis) {
  const int64_t input = axis == 0 ? c.height : c.width;
  return c.same ? Sliding::Same(input, c.kernel[axis], c.stride[axis])
                : Sliding::Valid(input, c.kernel[axis], c.stride[axis]);
}

Conv2DOptions OptionsOf(const ConvCase& c) {
  Conv2DOptions options;
  options.batch = c.batch;
  options.input = {c.height, c.width, c.channels};
  options.window.extent = c.kernel;
  options.window.stride = c.stride;
  for (int axis : {0, 1}) {
    const Sliding sliding = SlidingOf(c, axis);
    const int64_t input = axis == 0 ? c.height : c.width;
    options.window.pad_before[axis] = sliding.pad_before;
    options.window.pad_after[axis] =
        c.same ? std::max<int64_t>(0, (sliding.output - 1) * c.stride[axis] + c.kernel[axis] -
                                          input - sliding.pad_before)
               : 0;
  }
  options.output = {SlidingOf(c, 0).output, SlidingOf(c, 1).output, c.filters};
  options.bias = c.bias;
  options.relu = c.relu;
  return options;
}

void CheckConv(int threads, const ConvCase& c) {
  INFO("batch " << c.batch << ", " << c.height << "x" << c.width << "x" << c.channels << " -> "
                << c.filters << ", kernel " << c.kernel[0] << "x" << c.kernel[1] << ", stride "
                << c.stride[0] << "x" << c.stride[1] << (c.same ? ", SAME" : ", VALID") << ", bias "
                << c.bias << ", relu " << c.relu << ", threads " << threads);
  TestOps ops(threads);
  const std::unique_ptr<Op> op = Made(ops.Make(OptionsOf(c)));
  std::vector<Array> variables = {
      Array::Random({c.kernel[0], c.kernel[1], c.channels, c.filters}, "kernel")};
  if (c.bias) variables.push_back(Array::Random({c.filters}, "bias"));
  CheckOp(ops, *op, {Array::Random({c.batch, c.height, c.width, c.channels}, "x")}, variables,
          variables.size(), [&](const std::vector<Array>& x, const std::vector<Array>& v) {
            const Array y = reference::Conv2D(x[0], v[0], c.bias ? v[1] : Array(), SlidingOf(c, 0),
                                              SlidingOf(c, 1));
            return c.relu ? reference::Relu(y) : y;
          });
}

TEST_CASE("conv2d agrees with its reference forward and backward") {
  for (int threads : {1, 2}) {
    for (bool relu : {false, true}) {
      CheckConv(threads,
                {.batch = 2, .height = 8, .width = 8, .channels = 1, .filters = 32, .relu = relu});
      CheckConv(threads,
                {.batch = 3, .height = 6, .width = 5, .channels = 16, .filters = 32, .relu = relu});
      CheckConv(threads, {.batch = 1,
                          .height = 7,
                          .width = 9,
                          .channels = 3,
                          .filters = 5,
                          .kernel = {5, 5},
                          .relu = relu});
    }
    for (bool bias : {false, true}) {
      CheckConv(threads,
                {.batch = 2, .height = 5, .width = 6, .channels = 17, .filters = 33, .bias = bias});
    }
  }
}

TEST_CASE("conv2d agrees with its reference for odd windows, strides and paddings") {
  for (bool same : {false, true}) {
    // Even kernels: the odd zero of SAME is at the end.
    CheckConv(2, {.batch = 2,
                  .height = 6,
                  .width = 7,
                  .channels = 2,
                  .filters = 3,
                  .kernel = {2, 4},
                  .same = same});
    CheckConv(2, {.batch = 2,
                  .height = 9,
                  .width = 8,
                  .channels = 16,
                  .filters = 16,
                  .kernel = {4, 2},
                  .same = same});
    CheckConv(2, {.batch = 2,
                  .height = 7,
                  .width = 8,
                  .channels = 3,
                  .filters = 4,
                  .stride = {2, 3},
                  .same = same});
    CheckConv(2, {.batch = 1,
                  .height = 8,
                  .width = 8,
                  .channels = 16,
                  .filters = 32,
                  .stride = {2, 2},
                  .same = same});
    // Pixels that no window touches.
    CheckConv(2, {.batch = 1,
                  .height = 8,
                  .width = 7,
                  .channels = 2,
                  .filters = 3,
                  .kernel = {1, 1},
                  .stride = {3, 4},
                  .same = same});
    CheckConv(2, {.batch = 2,
                  .height = 5,
                  .width = 5,
                  .channels = 32,
                  .filters = 16,
                  .kernel = {1, 1},
                  .same = same});
  }
  // Many channels, where the gradient of the input goes another way.
  for (bool same : {false, true}) {
    CheckConv(2, {.batch = 2,
                  .height = 6,
                  .width = 5,
                  .channels = 32,
                  .filters = 48,
                  .kernel = {3, 2},
                  .same = same,
                  .relu = true});
    CheckConv(1, {.batch = 3,
                  .height = 5,
                  .width = 7,
                  .channels = 40,
                  .filters = 3,
                  .kernel = {4, 5},
                  .same = same});
  }
  CheckConv(2,
            {.batch = 1, .height = 2, .width = 3, .channels = 64, .filters = 16, .kernel = {7, 5}});
  // A window larger than the image, and an image that is one window.
  CheckConv(2,
            {.batch = 2, .height = 3, .width = 2, .channels = 2, .filters = 3, .kernel = {7, 5}});
  CheckConv(2, {.batch = 2,
                .height = 4,
                .width = 5,
                .channels = 3,
                .filters = 2,
                .kernel = {4, 5},
                .same = false});
}

TEST_CASE("a relu behind conv2d keeps a NaN, which its kernel had") {
  ConvCase shape{2, 9, 9, 3, 17};
  shape.relu = true;
  TestOps ops(2);
  const std::unique_ptr<Op> op = Made(ops.Make(OptionsOf(shape)));
  Array kernel = Array::Random({3, 3, 3, 17}, "kernel");
  kernel.values[1 * 3 * 3 * 17 + 1 * 3 * 17 + 4] = std::nan("");  // the centre's, of filter 4
  OpRun run(ops, {Array::Random({2, 9, 9, 3}, "x")}, {kernel, Array::Random({17}, "bias")},
            {2, 9, 9, 17});
  const Array y = run.Forward(*op, Mode::kTraining);
  int64_t wrong = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    wrong += i % 17 == 4 ? !std::isnan(y.values[i]) : !(y.values[i] >= 0);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a first layer leaves the gradient of its input alone") {
  TestOps ops(1);
  DenseOptions dense{{.batch = 2, .input_gradient = false}, 3, 4};
  OpRun dense_run(ops, {Array::Random({2, 3}, "x")},
                  {Array::Random({3, 4}, "kernel"), Array::Random({4}, "bias")}, {2, 4});
  const std::unique_ptr<Op> first = Made(ops.Make(dense));
  dense_run.Forward(*first, Mode::kTraining);
  dense_run.Backward(*first, Array::Random({2, 4}, "gradient"), /*want_inputs=*/false);
  CHECK(dense_run.variable_gradients[0].as<float>()[0] != 0);

  const ConvCase c{.batch = 2, .height = 4, .width = 4, .channels = 1, .filters = 8};
  Conv2DOptions conv = OptionsOf(c);
  conv.input_gradient = false;
  OpRun conv_run(ops, {Array::Random({2, 4, 4, 1}, "x")},
                 {Array::Random({3, 3, 1, 8}, "kernel"), Array::Random({8}, "bias")}, {2, 4, 4, 8});
  const std::unique_ptr<Op> second = Made(ops.Make(conv));
  conv_run.Forward(*second, Mode::kTraining);
  conv_run.Backward(*second, Array::Random({2, 4, 4, 8}, "gradient"), /*want_inputs=*/false);
  CHECK(conv_run.variable_gradients[0].as<float>()[0] != 0);
}

// Runs `make(frozen)`'s op both ways: the same gradient of the input, none of the variables.
template <typename Make>
void CheckFrozen(TestOps& ops, const Make& make, const Array& input,
                 const std::vector<Array>& variables, const std::vector<int64_t>& output_dims) {
  const Array weights = Array::Random(output_dims, "weights");
  OpRun trained(ops, {input}, variables, output_dims);
  OpRun frozen(ops, {input}, variables, output_dims);
  const std::unique_ptr<Op> trained_op = Made(make(true));
  const std::unique_ptr<Op> frozen_op = Made(make(false));
  CHECK(trained.Forward(*trained_op, Mode::kTraining).values ==
        frozen.Forward(*frozen_op, Mode::kTraining).values);
  trained.Backward(*trained_op, weights);
  frozen.Backward(*frozen_op, weights);
  CHECK(reference::ToArray(trained.input_gradients[0].view()).values ==
        reference::ToArray(frozen.input_gradients[0].view()).values);
  for (const Tensor& gradient : frozen.variable_gradients) {
    for (float value : gradient.as<float>()) CHECK(std::isnan(value));
  }
}

TEST_CASE("a frozen product passes gradients on and computes none of its own") {
  TestOps ops(2);
  CheckFrozen(
      ops,
      [&](bool trained) {
        return ops.Make(DenseOptions{
            {.batch = 3, .variable_gradients = trained}, 4, 5, /*bias=*/true, /*relu=*/true});
      },
      Array::Random({3, 4}, "x"), {Array::Random({4, 5}, "w"), Array::Random({5}, "b")}, {3, 5});
  const Window window{{3, 3}, {1, 1}, {1, 1}, {1, 1}};
  CheckFrozen(ops,
              [&](bool trained) {
                return ops.Make(Conv2DOptions{{.batch = 2, .variable_gradients = trained},
                                              {6, 6, 3},
                                              {6, 6, 4},
                                              window,
                                              /*bias=*/true,
                                              /*relu=*/true});
              },
              Array::Random({2, 6, 6, 3}, "x"),
              {Array::Random({3, 3, 3, 4}, "w"), Array::Random({4}, "b")}, {2, 6, 6, 4});
}

}  // namespace
}  // namespace lockstep::worker
