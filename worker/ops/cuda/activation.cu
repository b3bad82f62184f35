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
  MapElements(y, n, [=](int64_t i) { return Relu(x[i]); });
}

LOCKSTEP_KERNEL void lockstep_tanh(float* y, const float* x, int64_t n) {
  MapElements(y, n, [=](int64_t i) { return VectorTanh(x[i]); });
}

LOCKSTEP_KERNEL void lockstep_sigmoid(float* y, const float* x, int64_t n) {
  MapElements(y, n, [=](int64_t i) { return VectorSigmoid(x[i]); });
}

LOCKSTEP_KERNEL void lockstep_relu_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapElements(to, n, [=](int64_t i) { return ReluGradient(y[i], gradient[i]); });
}

LOCKSTEP_KERNEL void lockstep_tanh_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapElements(to, n, [=](int64_t i) { return TanhGradient(y[i], gradient[i]); });
}

LOCKSTEP_KERNEL void lockstep_sigmoid_gradient(float* to, const float* y, const float* gradient,
                                               int64_t n) {
  MapElements(to, n, [=](int64_t i) { return SigmoidGradient(y[i], gradient[i]); });
}
