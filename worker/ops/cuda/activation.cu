#include "worker/ops/activation_element.h"
#include "worker/ops/cuda/activation.cuh"
#include "worker/ops/cuda/element_loop.cuh"
#include "worker/ops/sigmoid.h"

using lockstep::BFloat16;
using lockstep::worker::Relu;
using lockstep::worker::ReluGradient;
using lockstep::worker::SigmoidGradient;
using lockstep::worker::TanhGradient;
using lockstep::worker::VectorSigmoid;
using lockstep::worker::VectorTanh;
using lockstep::worker::cuda::MapElements;

namespace {

template <typename T>
LOCKSTEP_DEVICE void MapRelu(T* y, const T* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return Relu(value); }, x);
}
template <typename T>
LOCKSTEP_DEVICE void MapTanh(T* y, const T* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return VectorTanh(value); }, x);
}
template <typename T>
LOCKSTEP_DEVICE void MapSigmoid(T* y, const T* x, int64_t n) {
  MapElements(
      y, n, [](float value) { return VectorSigmoid(value); }, x);
}

template <typename T>
LOCKSTEP_DEVICE void MapReluGradient(T* to, const T* y, const T* gradient, int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return ReluGradient(value, of_value); }, y,
      gradient);
}
template <typename T>
LOCKSTEP_DEVICE void MapTanhGradient(T* to, const T* y, const T* gradient, int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return TanhGradient(value, of_value); }, y,
      gradient);
}
template <typename T>
LOCKSTEP_DEVICE void MapSigmoidGradient(T* to, const T* y, const T* gradient, int64_t n) {
  MapElements(
      to, n, [](float value, float of_value) { return SigmoidGradient(value, of_value); }, y,
      gradient);
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_relu(float* y, const float* x, int64_t n) { MapRelu(y, x, n); }
LOCKSTEP_KERNEL void lockstep_relu_bf16(BFloat16* y, const BFloat16* x, int64_t n) {
  MapRelu(y, x, n);
}

LOCKSTEP_KERNEL void lockstep_tanh(float* y, const float* x, int64_t n) { MapTanh(y, x, n); }
LOCKSTEP_KERNEL void lockstep_tanh_bf16(BFloat16* y, const BFloat16* x, int64_t n) {
  MapTanh(y, x, n);
}

LOCKSTEP_KERNEL void lockstep_sigmoid(float* y, const float* x, int64_t n) { MapSigmoid(y, x, n); }
LOCKSTEP_KERNEL void lockstep_sigmoid_bf16(BFloat16* y, const BFloat16* x, int64_t n) {
  MapSigmoid(y, x, n);
}

LOCKSTEP_KERNEL void lockstep_relu_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapReluGradient(to, y, gradient, n);
}
LOCKSTEP_KERNEL void lockstep_relu_gradient_bf16(BFloat16* to, const BFloat16* y,
                                                 const BFloat16* gradient, int64_t n) {
  MapReluGradient(to, y, gradient, n);
}

LOCKSTEP_KERNEL void lockstep_tanh_gradient(float* to, const float* y, const float* gradient,
                                            int64_t n) {
  MapTanhGradient(to, y, gradient, n);
}
LOCKSTEP_KERNEL void lockstep_tanh_gradient_bf16(BFloat16* to, const BFloat16* y,
                                                 const BFloat16* gradient, int64_t n) {
  MapTanhGradient(to, y, gradient, n);
}

LOCKSTEP_KERNEL void lockstep_sigmoid_gradient(float* to, const float* y, const float* gradient,
                                               int64_t n) {
  MapSigmoidGradient(to, y, gradient, n);
}
LOCKSTEP_KERNEL void lockstep_sigmoid_gradient_bf16(BFloat16* to, const BFloat16* y,
                                                    const BFloat16* gradient, int64_t n) {
  MapSigmoidGradient(to, y, gradient, n);
}
