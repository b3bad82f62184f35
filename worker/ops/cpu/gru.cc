#include "worker/ops/gru.h"

#include "worker/ops/cpu/recurrent_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/gru_element.h"

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
        const GruGates gates =
            ActivateGru({g[j], g[n + j], g[2 * n + j]}, {s[j], s[n + j], s[2 * n + j]});
        hidden[j] = GruHidden(gates, before[j]);
        g[j] = gates.z;
        g[n + j] = gates.r;
        g[2 * n + j] = gates.h;
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
        const GruGradients gradients =
            DifferentiateGru({g[j], g[n + j], g[2 * n + j]}, s[2 * n + j], before[j], dh[j]);
        g[j] = s[j] = gradients.input.z;
        g[n + j] = s[n + j] = gradients.input.r;
        g[2 * n + j] = gradients.input.h;
        s[2 * n + j] = gradients.state_h;
        dh[j] = gradients.before;
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
