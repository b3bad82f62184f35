#include "worker/ops/gru.h"

#include "worker/ops/cpu/recurrent_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/sigmoid.h"

namespace lockstep::worker::cpu {
namespace {

class GruOp : public RecurrentOp {
  static constexpr int kGates = 3;  // z, r, h

 public:
  GruOp(OneDnn* onednn, const GruOptions& options)
      : RecurrentOp(onednn, options, kGates, /*reset_after=*/true) {}

 private:
  void BeginForward(const ForwardArgs&) override {}

  void Activate(int64_t step, int64_t begin, int64_t end) override {
    const int64_t n = units();
    for (int64_t row = begin; row < end; ++row) {
      float* __restrict const g = Gates(step) + row * kGates * n;
      const float* __restrict const s = StateGates(step) + row * kGates * n;
      const float* __restrict const before = Hidden(step) + row * n;
      float* __restrict const hidden = Hidden(step + 1) + row * n;
      for (int64_t j = 0; j < n; ++j) {
        const float z = VectorSigmoid(g[j] + s[j]);
        const float r = VectorSigmoid(g[n + j] + s[n + j]);
        const float candidate = VectorTanh(g[2 * n + j] + r * s[2 * n + j]);
        hidden[j] = z * before[j] + (1 - z) * candidate;
        g[j] = z;
        g[n + j] = r;
        g[2 * n + j] = candidate;
      }
    }
  }

  void BeginBackward() override {}

  void Differentiate(int64_t step, int64_t begin, int64_t end, float* gradient) override {
    const int64_t n = units();
    for (int64_t row = begin; row < end; ++row) {
      float* __restrict const g = Gates(step) + row * kGates * n;
      float* __restrict const s = StateGates(step) + row * kGates * n;
      const float* __restrict const before = Hidden(step) + row * n;
      float* __restrict const dh = gradient + row * n;
      for (int64_t j = 0; j < n; ++j) {
        const float z = g[j], r = g[n + j], candidate = g[2 * n + j];
        const float dz = dh[j] * (before[j] - candidate) * z * (1 - z);
        const float dn = dh[j] * (1 - z) * (1 - candidate * candidate);
        const float dr = dn * s[2 * n + j] * r * (1 - r);
        g[j] = s[j] = dz;
        g[n + j] = s[n + j] = dr;
        g[2 * n + j] = dn;
        s[2 * n + j] = dn * r;
        dh[j] *= z;
      }
    }
  }

  void EndBackward(const BackwardArgs&) override {}
};

std::unique_ptr<Op> MakeGru(OneDnn* onednn, const GruOptions& options) {
  return std::make_unique<GruOp>(onednn, options);
}

const Registration<&MakeGru> kGru;

}  // namespace
}  // namespace lockstep::worker::cpu
