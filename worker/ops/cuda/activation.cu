#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/sigmoid.h"

using lockstep::worker::Relu;
using lockstep::worker::ReluGradient;
using lockstep::worker::SigmoidGradient;
using lockstep::worker::TanhGradient;
using lockstep::worker::VectorSigmoid;
using lockstep::worker::VectorTanh;
using lockstep::worker::cuda::MapElements;

LOCKSTEP_KERNEL void lockstep_relu(float* y, const float* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return Relu(value); }, x);
}

LOCKSTEP_KERNEL void lockstep_tanh(float* y, const float* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return VectorTanh(value); }, x);
}

LOCKSTEP_KERNEL void lockstep_sigmoid(float* y, const float* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return VectorSigmoid(value); }, x);
}

LOCKSTEP_KERNEL void lockstep_relu_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return ReluGradient(value, of_value); }, y,
      gradient);
}

LOCKSTEP_KERNEL void lockstep_tanh_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return TanhGradient(value, of_value); }, y,
      gradient);
}

LOCKSTEP_KERNEL void lockstep_sigmoid_gradient(float* to, const float* y, const float* gradient,
                                               int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return SigmoidGradient(value, of_value); }, y,
      gradient);
}
