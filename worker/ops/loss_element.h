// Losses of one element, and what they are made of: the same on every device.
#pragma once

#include <cmath>

#include "common/base/host_device.h"

namespace lockstep::worker {

// Of (y - target)^2 / 2, and of its mean over a batch.
LOCKSTEP_HOST_DEVICE inline double L2Term(float y, float target) {
  const double difference = static_cast<double>(y) - static_cast<double>(target);
  return difference * difference / 2;
}
LOCKSTEP_HOST_DEVICE inline float L2Gradient(float y, float target, float batch) {
  return (y - target) / batch;
}

// The exponential of a negative number: it does not overflow.
LOCKSTEP_HOST_DEVICE inline double SigmoidOf(double logit) {
  const double tail = std::exp(-std::abs(logit));
  return (logit >= 0 ? 1 : tail) / (1 + tail);
}

// -(target log p + (1 - target) log(1 - p)), p = sigmoid(logit), and the gradient of its mean over
// `elements`.
LOCKSTEP_HOST_DEVICE inline double SigmoidCrossEntropyTerm(double logit, double target) {
  return (logit > 0 ? logit : 0.0) - logit * target + std::log1p(std::exp(-std::abs(logit)));
}
LOCKSTEP_HOST_DEVICE inline float SigmoidCrossEntropyGradient(double logit, double target,
                                                              double elements) {
  return static_cast<float>((SigmoidOf(logit) - target) / elements);
}

// exp(score - largest) of the scores of an example: the largest is taken out so that nothing
// overflows.
LOCKSTEP_HOST_DEVICE inline float SoftmaxTerm(float score, float largest) {
  return std::exp(score - largest);
}
// -log of the softmax of `score`; `sum` is that of all terms.
LOCKSTEP_HOST_DEVICE inline double SoftmaxLoss(double sum, float largest, float score) {
  return std::log(sum) - (static_cast<double>(score) - static_cast<double>(largest));
}

}  // namespace lockstep::worker
