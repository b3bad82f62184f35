// Against loops over the occurrences, with tables around the rows of a block and batches around
// what its threads look at at a time.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {
namespace {

TEST_CASE("indices are found among the rows that a variable holds") {
  const std::vector<int64_t> rows = {0, 3, 4, 9, 16777215, 1};  // the last is one of before
  const int64_t held = 5;
  Guarded<float> indices(7);
  const std::vector<float> asked = {9, 0, 16777215, 4, 3, 5, 100};
  for (int64_t i = 0; i < 7; ++i) indices[i] = asked[static_cast<size_t>(i)];
  for (const Grid& grid : {Grid{1, 1}, Grid{2, 32}}) {
    Guarded<int32_t> positions(7);
    Launch("lockstep_find_rows", grid, positions.data(), static_cast<const float*>(indices.data()),
           rows.data(), &held, int64_t{1} << 24, int64_t{7});
    CHECK(std::vector<int32_t>(positions.data(), positions.data() + 7) ==
          std::vector<int32_t>{3, 0, 4, 2, 1, -1, -1});
    CHECK(positions.IsIntact());
    // A whole table.
    Launch("lockstep_find_rows", grid, positions.data(), static_cast<const float*>(indices.data()),
           static_cast<const int64_t*>(nullptr), static_cast<const int64_t*>(nullptr), int64_t{10},
           int64_t{7});
    CHECK(std::vector<int32_t>(positions.data(), positions.data() + 7) ==
          std::vector<int32_t>{9, 0, -1, 4, 3, 5, -1});
  }
}

Guarded<int32_t> Positions(int64_t n, int64_t rows) {
  Guarded<int32_t> positions(n);
  for (int64_t i = 0; i < n; ++i) positions[i] = static_cast<int32_t>(i * i * 7 % rows);
  return positions;
}

TEST_CASE("rows are added up in their order, and one that is not held is NaN") {
  constexpr int64_t kRows = 5;
  constexpr int64_t kOutputs = 9;
  for (const Grid& grid : {Grid{1, 1}, Grid{1, 3}, Grid{2, 32}, Grid{5, 256}}) {
    for (const int64_t count : {1, 2, 5}) {
      for (const int64_t dim : {1, 7, 300}) {
        Guarded<float> table = Numbers(kRows * dim, 2);
        Guarded<int32_t> positions = Positions(kOutputs * count, kRows);
        positions[3 * count] = -1;
        Guarded<float> y(kOutputs * dim);
        Launch("lockstep_embedding", grid, y.data(), static_cast<const float*>(table.data()),
               static_cast<const int32_t*>(positions.data()), count, kOutputs, dim);
        int64_t wrong = 0;
        for (int64_t i = 0; i < kOutputs * dim; ++i) {
          if (i / dim == 3) {
            wrong += !std::isnan(y[i]);
            continue;
          }
          const int32_t* const of = &positions[i / dim * count];
          float sum = table[of[0] * dim + i % dim];
          for (int64_t k = 1; k < count; ++k) sum += table[of[k] * dim + i % dim];
          wrong += y[i] != sum;
        }
        CHECK(wrong == 0);
        CHECK(y.IsIntact());
      }
    }
  }
}

TEST_CASE("the gradient of a row sums its occurrences in their order, and of no other row") {
  for (const unsigned int blocks : {1u, 3u}) {
    for (const int64_t rows : {1, 63, 64, 65, 200}) {
      for (const int64_t n : {1, 31, 33, 2047, 2049, 5000}) {
        for (const int64_t dim : {1, 67}) {
          INFO(blocks << " blocks, " << rows << " rows, " << n << " indices, " << dim
                      << " numbers");
          constexpr int64_t kCount = 1;
          Guarded<float> gradient = Numbers(n * dim, 2);
          Guarded<int32_t> positions = Positions(n, rows);
          positions[n / 2] = -1;
          std::vector<float> wanted(static_cast<size_t>(rows * dim));
          for (int64_t i = 0; i < n; ++i) {
            if (positions[i] < 0) continue;
            for (int64_t d = 0; d < dim; ++d) {
              wanted[static_cast<size_t>(positions[i] * dim + d)] += gradient[i * dim + d];
            }
          }
          // All rows of a table, and so many of a larger one.
          for (const bool whole : {true, false}) {
            Guarded<float> to(rows * dim);
            Launch("lockstep_embedding_gradient", {blocks, kRowThreads}, to.data(),
                   static_cast<const float*>(gradient.data()),
                   static_cast<const int32_t*>(positions.data()), kCount, n,
                   whole ? nullptr : &rows, whole ? rows : 10 * rows, dim);
            CHECK(std::equal(wanted.begin(), wanted.end(), to.data()));
            CHECK(to.IsIntact());
          }
        }
      }
    }
  }
}

TEST_CASE("rows that were added up have the gradient of their sum") {
  Guarded<float> gradient(2);
  gradient[0] = 1;
  gradient[1] = 10;
  Guarded<int32_t> positions(6);
  const std::vector<int32_t> of = {0, 2, 2, 1, 2, 0};
  for (int64_t i = 0; i < 6; ++i) positions[i] = of[static_cast<size_t>(i)];
  Guarded<float> to(3);
  Launch("lockstep_embedding_gradient", {1, kRowThreads}, to.data(),
         static_cast<const float*>(gradient.data()), static_cast<const int32_t*>(positions.data()),
         int64_t{3}, int64_t{6}, static_cast<const int64_t*>(nullptr), int64_t{3}, int64_t{1});
  CHECK(std::vector<float>(to.data(), to.data() + 3) == std::vector<float>{11, 10, 12});
}

}  // namespace
}  // namespace lockstep::worker::cuda
