// Kernels whose blocks have a row each, compiled for the host, against plain loops: rows shorter
// and longer than a block, with a block for each row and with fewer.
#include <functional>
#include <limits>

#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {
namespace {

constexpr unsigned int kBlocks[] = {1, 3};
constexpr int64_t kRows[] = {1, 5};
constexpr int64_t kWidths[] = {1, 2, 63, 64, 65, 257};

void ForEachShape(const std::function<void(const Grid&, int64_t rows, int64_t width)>& test) {
  for (const unsigned int blocks : kBlocks) {
    for (const int64_t rows : kRows) {
      for (const int64_t width : kWidths) {
        INFO(blocks << " blocks, " << rows << " rows of " << width);
        test({blocks, kRowThreads}, rows, width);
      }
    }
  }
}

bool IsClose(double got, double wanted, double tolerance = 1e-6) {
  return std::abs(got - wanted) <= tolerance * std::max(1.0, std::abs(wanted));
}

float* const kNotWanted = nullptr;

TEST_CASE("softmax cross-entropy of rows equals its reference") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t classes) {
    Guarded<float> scores = Numbers(rows * classes, 6);
    Guarded<int32_t> labels(rows);
    for (int64_t row = 0; row < rows; ++row) {
      labels[row] = static_cast<int32_t>(row * 7 % classes);
    }
    // The largest of row 0 comes twice; its label is the first one.
    scores[0] = 50;
    scores[classes - 1] = 50;
    Guarded<float> gradient(rows * classes);
    Guarded<float> probabilities(rows * classes);
    Guarded<double> losses(rows);
    Guarded<double> correct(rows);
    const float* const z = scores.data();
    const int32_t* const label_data = labels.data();
    Launch("lockstep_softmax_cross_entropy", grid, gradient.data(), losses.data(), correct.data(),
           z, label_data, classes, rows);
    Launch("lockstep_softmax", grid, probabilities.data(), z, classes, rows);
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* const begin = z + row * classes;
      const float* const largest = std::max_element(begin, begin + classes);
      double sum = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(double{begin[c]} - double{*largest});
      const int32_t label = labels[row];
      wrong += correct[row] != (largest - begin == label ? 1 : 0);
      wrong += !IsClose(losses[row], std::log(sum) - double{begin[label]} + double{*largest});
      for (int64_t c = 0; c < classes; ++c) {
        const double probability = std::exp(double{begin[c]} - double{*largest}) / sum;
        const int64_t i = row * classes + c;
        wrong += !IsClose(probabilities[i], probability);
        wrong += !IsClose(gradient[i], (probability - (c == label)) / static_cast<double>(rows));
      }
    }
    CHECK(wrong == 0);
    CHECK((gradient.IsIntact() && probabilities.IsIntact()));
    CHECK((losses.IsIntact() && correct.IsIntact()));
    // Nothing but the losses is wanted.
    Guarded<double> again(rows);
    Launch("lockstep_softmax_cross_entropy", grid, kNotWanted, again.data(),
           static_cast<double*>(nullptr), z, label_data, classes, rows);
    CHECK(std::equal(again.data(), again.data() + rows, losses.data()));
  });
}

TEST_CASE("squared differences of rows equal their reference") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t outputs) {
    Guarded<float> y = Numbers(rows * outputs, 2);
    Guarded<float> targets = Numbers(rows * outputs, 3);
    Guarded<float> gradient(rows * outputs);
    Guarded<double> losses(rows);
    Launch("lockstep_l2", grid, gradient.data(), losses.data(), static_cast<const float*>(y.data()),
           static_cast<const float*>(targets.data()), outputs, rows);
    int64_t wrong = 0;
    for (int64_t row = 0; row < rows; ++row) {
      double loss = 0;
      for (int64_t i = row * outputs; i < (row + 1) * outputs; ++i) {
        const double difference = double{y[i]} - double{targets[i]};
        loss += difference * difference / 2;
        wrong += !IsClose(gradient[i], difference / static_cast<double>(rows));
      }
      wrong += !IsClose(losses[row], loss);
    }
    CHECK(wrong == 0);
    CHECK((gradient.IsIntact() && losses.IsIntact()));
  });
}

TEST_CASE("sigmoid cross-entropy of rows equals its reference, with targets and with one") {
  ForEachShape([](const Grid& grid, int64_t rows, int64_t outputs) {
    Guarded<float> logits = Numbers(rows * outputs, 8);
    Guarded<float> targets = Numbers(rows * outputs, 1);
    for (const bool has_targets : {true, false}) {
      constexpr float kTarget = 0.9f;
      Guarded<float> gradient(rows * outputs);
      Guarded<double> losses(rows);
      Launch("lockstep_sigmoid_cross_entropy", grid, gradient.data(), losses.data(),
             static_cast<const float*>(logits.data()),
             static_cast<const float*>(has_targets ? targets.data() : nullptr), kTarget, outputs,
             rows);
      int64_t wrong = 0;
      for (int64_t row = 0; row < rows; ++row) {
        double loss = 0;
        for (int64_t i = row * outputs; i < (row + 1) * outputs; ++i) {
          const double p = 1 / (1 + std::exp(-double{logits[i]}));
          const double target = has_targets ? targets[i] : kTarget;
          loss -= target * std::log(p) + (1 - target) * std::log(1 - p);
          wrong += !IsClose(gradient[i], (p - target) / static_cast<double>(rows * outputs));
        }
        wrong += !IsClose(losses[row], loss);
      }
      CHECK(wrong == 0);
      CHECK((gradient.IsIntact() && losses.IsIntact()));
    }
  });
}

TEST_CASE("losses of rows are added up, and divided once") {
  for (const int64_t rows : {1, 63, 64, 65, 1009}) {
    Guarded<double> losses(rows);
    Guarded<double> correct(rows);
    for (int64_t row = 0; row < rows; ++row) {
      losses[row] = static_cast<double>(row) + 0.5;
      correct[row] = static_cast<double>(row % 3 == 0);
    }
    float mean = 0;
    double sums[2] = {};
    const Grid grid{1, kRowThreads};
    const double* const all = losses.data();
    const double* const right = correct.data();
    Launch("lockstep_sum_losses", grid, &mean, static_cast<double*>(nullptr), all, right, 4.0,
           rows);
    Launch("lockstep_sum_losses", grid, kNotWanted, &sums[0], all, right, 1.0, rows);
    const double n = static_cast<double>(rows);
    CHECK(mean == static_cast<float>(n * n / 8));
    CHECK(sums[0] == n * n / 2);
    CHECK(sums[1] == static_cast<double>((rows + 2) / 3));
    Launch("lockstep_sum_losses", grid, kNotWanted, &sums[0], all,
           static_cast<const double*>(nullptr), 1.0, rows);
    CHECK(sums[1] == 0);
  }
}

TEST_CASE("scores that are not numbers make the loss none") {
  const float scores[] = {1, std::numeric_limits<float>::quiet_NaN(), 2};
  const int32_t label = 2;
  double loss = 0;
  Launch("lockstep_softmax_cross_entropy", {1, kRowThreads}, kNotWanted, &loss,
         static_cast<double*>(nullptr), &scores[0], &label, int64_t{3}, int64_t{1});
  CHECK(std::isnan(loss));
}

}  // namespace
}  // namespace lockstep::worker::cuda
