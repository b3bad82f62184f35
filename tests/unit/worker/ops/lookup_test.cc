// Embedding and columns.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/ops/columns.h"
#include "worker/ops/embedding.h"

namespace lockstep::worker {
namespace {

using reference::Array;

// Row indices that repeat within an example and between examples.
Array Indices(int64_t batch, int64_t per_example, int64_t rows) {
  Array indices = Array::Random({batch, per_example}, "indices");
  for (double& index : indices.values) index = std::floor((index + 1) / 2 * rows);
  return indices;
}

constexpr EmbeddingCombiner kBoth[] = {EmbeddingCombiner::kConcatenate, EmbeddingCombiner::kSum};

Array Looked(const Array& indices, const Array& table, EmbeddingCombiner combiner) {
  return reference::Embedding(indices, table, combiner == EmbeddingCombiner::kSum);
}

TEST_CASE("columns agree with their reference, on vectors and on images") {
  TestOps ops(2);
  const std::unique_ptr<Op> vectors = Made(ops.Make(ColumnsOptions{{.batch = 3}, 1, 7, 2, 4}));
  CheckOp(ops, *vectors, {Array::Random({3, 7}, "x")}, {}, 0,
          [](const std::vector<Array>& inputs, const std::vector<Array>&) {
            return reference::Columns(inputs[0], 2, 4);
          });
  // Large enough for two threads; the first and the last column.
  for (int64_t first : {0, 4}) {
    const std::unique_ptr<Op> images =
        Made(ops.Make(ColumnsOptions{{.batch = 6}, 40 * 41, 5, first, 1}));
    CheckOp(ops, *images, {Array::Random({6, 40, 41, 5}, "x")}, {}, 0,
            [&](const std::vector<Array>& inputs, const std::vector<Array>&) {
              return reference::Columns(inputs[0], first, 1);
            });
  }
}

TEST_CASE("embeddings agree with their reference, with one row and with many, small and large") {
  struct Sizes {
    int64_t batch, indices, rows, dim;
  };
  for (const Sizes& s : {Sizes{1, 1, 1, 1}, Sizes{5, 3, 7, 4}, Sizes{600, 9, 1000, 16}}) {
    for (EmbeddingCombiner combiner : kBoth) {
      TestOps ops(2);
      const std::unique_ptr<Op> op =
          Made(ops.Make(EmbeddingOptions{{.batch = s.batch}, s.rows, s.dim, s.indices, combiner}));
      CheckOp(
          ops, *op, {Indices(s.batch, s.indices, s.rows)},
          {Array::Random({s.rows, s.dim}, "table")}, 1,
          [&](const std::vector<Array>& inputs, const std::vector<Array>& variables) {
            return Looked(inputs[0], variables[0], combiner);
          },
          /*of_inputs=*/false);
    }
  }
}

TEST_CASE("a gradient has the rows that were asked for, and zero where nobody looked") {
  constexpr int64_t kRows = 1000;
  constexpr int64_t kDim = 5;
  const Array indices = Indices(20, 4, kRows);
  const Array table = Array::Random({kRows, kDim}, "table");
  // What the batch reads, and one row more.
  std::vector<int64_t> held = {999};
  for (double index : indices.values) held.push_back(static_cast<int64_t>(index));
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  Array part({static_cast<int64_t>(held.size()), kDim});
  for (int64_t i = 0; i < part.size(); ++i) {
    part.values[i] = table.values[held[i / kDim] * kDim + i % kDim];
  }
  for (EmbeddingCombiner combiner : kBoth) {
    TestOps ops(1);
    const std::unique_ptr<Op> op =
        Made(ops.Make(EmbeddingOptions{{.batch = 20}, kRows, kDim, 4, combiner}));
    const Array wanted = Looked(indices, table, combiner);
    const Array weights = Array::Random(wanted.dims, "weights");
    OpRun whole(ops, {indices}, {table}, wanted.dims);
    const Array output = whole.Forward(*op, Mode::kTraining);
    whole.Backward(*op, weights, false);
    OpRun some(ops, {indices}, {part}, wanted.dims);
    some.rows = {held};
    CHECK(some.Forward(*op, Mode::kTraining).values == output.values);
    some.Backward(*op, weights, false);
    const std::span<const float> got = some.variable_gradients[0].as<float>();
    const std::span<const float> all = whole.variable_gradients[0].as<float>();
    for (int64_t row = 0; row < kRows; ++row) {
      const auto found = std::lower_bound(held.begin(), held.end(), row);
      const bool here = found != held.end() && *found == row;
      for (int64_t d = 0; d < kDim; ++d) {
        const float is = here ? got[(found - held.begin()) * kDim + d] : 0.0f;
        if (all[row * kDim + d] != is) FAIL("row " << row);
      }
    }
    CHECK(got[got.size() - 1] == 0.0f);
  }
}

TEST_CASE("a row that is looked up twice in an example gets both gradients") {
  TestOps ops(1);
  Array indices({1, 3});
  indices.values = {1, 0, 1};
  Array gradient({1, 6});
  std::iota(gradient.values.begin(), gradient.values.end(), 1.0);
  const std::unique_ptr<Op> op = Made(ops.Make(EmbeddingOptions{{.batch = 1}, 2, 2, 3}));
  OpRun run(ops, {indices}, {Array::Random({2, 2}, "table")}, {1, 6});
  run.Forward(*op, Mode::kTraining);
  run.Backward(*op, gradient, false);
  const std::span<const float> got = run.variable_gradients[0].as<float>();
  CHECK(std::vector<float>(got.begin(), got.end()) == std::vector<float>{3, 4, 1 + 5, 2 + 6});
}

TEST_CASE("an embedding's gradient is what TensorFlow gave for the same indices") {
  // TensorFlow 2.21: tf.gradients of embedding_lookup, its values summed by index.
  TestOps ops(1);
  Array indices({3, 4});
  indices.values = {5, 0, 5, 2, 2, 2, 7, 0, 1, 5, 5, 5};
  Array gradient({3, 4});
  gradient.values = {1.78862846,    0.436509848,  0.0964974687, -1.86349273,
                     -0.277388215,  -0.354758978, -0.082741484, -0.62700069,
                     -0.0438181683, -0.477218032, -1.31386471,  0.884622395};
  const std::vector<float> wanted = {
      -0.190490842f, -0.0438181683f, -2.49564004f, 0, 0, 0.978665531f, 0, -0.082741484f};
  const std::unique_ptr<Op> op = Made(ops.Make(EmbeddingOptions{{.batch = 3}, 8, 1, 4}));
  OpRun run(ops, {indices}, {Array({8, 1})}, {3, 4});
  run.Forward(*op, Mode::kTraining);
  run.Backward(*op, gradient, false);
  const std::span<const float> got = run.variable_gradients[0].as<float>();
  CHECK(std::vector<float>(got.begin(), got.end()) == wanted);
}

TEST_CASE("an embedding's gradient has the same bits on any number of threads") {
  const Array indices = Indices(500, 8, 40);  // a hundred occurrences of each row
  const Array table = Array::Random({40, 64}, "table");
  for (EmbeddingCombiner combiner : kBoth) {
    std::vector<Tensor> gradients;
    for (int threads : {1, 2, 4}) {
      TestOps ops(threads);
      const std::unique_ptr<Op> op =
          Made(ops.Make(EmbeddingOptions{{.batch = 500}, 40, 64, 8, combiner}));
      const Array output = Looked(indices, table, combiner);
      OpRun run(ops, {indices}, {table}, output.dims);
      run.Forward(*op, Mode::kTraining);
      run.Backward(*op, Array::Random(output.dims, "weights"), false);
      gradients.push_back(run.variable_gradients[0].Clone());
      CHECK(std::memcmp(gradients[0].data(), gradients.back().data(), gradients[0].num_bytes()) ==
            0);
    }
  }
}

TEST_CASE("a frozen embedding has no gradient") {
  TestOps ops(1);
  const std::unique_ptr<Op> op =
      Made(ops.Make(EmbeddingOptions{{.batch = 2, .variable_gradients = false}, 7, 2, 3}));
  OpRun run(ops, {Indices(2, 3, 7)}, {Array::Random({7, 2}, "table")}, {2, 6});
  run.Forward(*op, Mode::kTraining);
  run.Backward(*op, Array::Random({2, 6}, "weights"), false);
  for (float value : run.variable_gradients[0].as<float>()) CHECK(std::isnan(value));
}

}  // namespace
}  // namespace lockstep::worker
