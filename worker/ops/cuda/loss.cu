#include <cmath>

#include "worker/ops/cuda/block_sum.cuh"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/cuda/loss.cuh"
#include "worker/ops/loss_element.h"

using lockstep::worker::L2Gradient;
using lockstep::worker::L2Term;
using lockstep::worker::SigmoidCrossEntropyGradient;
using lockstep::worker::SigmoidCrossEntropyTerm;
using lockstep::worker::SigmoidOf;
using lockstep::worker::SoftmaxLoss;
using lockstep::worker::SoftmaxTerm;
using lockstep::worker::cuda::BlockLargest;
using lockstep::worker::cuda::BlockSum;
using lockstep::worker::cuda::BlockSumOf;
using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::kRowThreads;
using lockstep::worker::cuda::LargerOf;
using lockstep::worker::cuda::Largest;

namespace {

// The first of the largest scores of a row.
LOCKSTEP_DEVICE Largest LargestScore(const float* scores, int64_t classes) {
  Largest largest = {-INFINITY, classes};
  for (int64_t c = threadIdx.x; c < classes; c += kRowThreads) {
    largest = LargerOf(largest, {scores[c], c});
  }
  return BlockLargest(largest);
}

LOCKSTEP_DEVICE double SumOfTerms(const float* scores, int64_t classes, float largest) {
  double sum = 0;
  for (int64_t c = threadIdx.x; c < classes; c += kRowThreads) {
    sum += SoftmaxTerm(scores[c], largest);
  }
  return BlockSum(sum);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_softmax_cross_entropy(float* gradient, double* losses,
                                                    double* correct, const float* scores,
                                                    const int32_t* labels, int64_t classes,
                                                    int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* const z = scores + row * classes;
    const Largest largest = LargestScore(z, classes);
    const double sum = SumOfTerms(z, classes, largest.value);
    const int64_t label = labels[row];
    if (threadIdx.x == 0) {
      losses[row] = SoftmaxLoss(sum, largest.value, z[label]);
      if (correct != nullptr) correct[row] = largest.index == label ? 1 : 0;
    }
    if (gradient == nullptr) continue;
    const float scale = static_cast<float>(1 / (sum * static_cast<double>(rows)));
    for (int64_t c = threadIdx.x; c < classes; c += kRowThreads) {
      const float probability = SoftmaxTerm(z[c], largest.value) * scale;
      gradient[row * classes + c] =
          c == label ? probability - 1 / static_cast<float>(rows) : probability;
    }
  }
}

LOCKSTEP_KERNEL void lockstep_softmax(float* probabilities, const float* scores, int64_t classes,
                                      int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* const z = scores + row * classes;
    const float largest = LargestScore(z, classes).value;
    const double sum = SumOfTerms(z, classes, largest);
    for (int64_t c = threadIdx.x; c < classes; c += kRowThreads) {
      probabilities[row * classes + c] = static_cast<float>(SoftmaxTerm(z[c], largest) / sum);
    }
  }
}

LOCKSTEP_KERNEL void lockstep_l2(float* gradient, double* losses, const float* y,
                                 const float* targets, int64_t outputs, int64_t rows) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    double sum = 0;
    for (int64_t i = row * outputs + threadIdx.x; i < (row + 1) * outputs; i += kRowThreads) {
      sum += L2Term(y[i], targets[i]);
      if (gradient != nullptr) gradient[i] = L2Gradient(y[i], targets[i], static_cast<float>(rows));
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) losses[row] = sum;
  }
}

LOCKSTEP_KERNEL void lockstep_sigmoid_cross_entropy(float* gradient, double* losses,
                                                    const float* logits, const float* targets,
                                                    float target, int64_t outputs, int64_t rows) {
  const double elements = static_cast<double>(rows * outputs);
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    double sum = 0;
    for (int64_t i = row * outputs + threadIdx.x; i < (row + 1) * outputs; i += kRowThreads) {
      const double wanted = static_cast<double>(targets == nullptr ? target : targets[i]);
      sum += SigmoidCrossEntropyTerm(logits[i], wanted);
      if (gradient != nullptr) {
        gradient[i] = SigmoidCrossEntropyGradient(logits[i], wanted, elements);
      }
    }
    sum = BlockSum(sum);
    if (threadIdx.x == 0) losses[row] = sum;
  }
}

LOCKSTEP_KERNEL void lockstep_sum_losses(float* mean, double* sums, const double* losses,
                                         const double* correct, double divisor, int64_t rows) {
  const double loss = BlockSumOf(losses, rows) / divisor;
  const double right = correct == nullptr ? 0 : BlockSumOf(correct, rows);
  if (threadIdx.x != 0) return;
  if (mean != nullptr) *mean = static_cast<float>(loss);
  if (sums == nullptr) return;
  sums[0] = loss;
  sums[1] = right;
}

LOCKSTEP_KERNEL void lockstep_sigmoid_of_logits(float* probabilities, const float* logits,
                                                int64_t n) {
  ForEachElement(n,
                 [=](int64_t i) { probabilities[i] = static_cast<float>(SigmoidOf(logits[i])); });
}
