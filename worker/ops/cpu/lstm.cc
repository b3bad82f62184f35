#include "worker/ops/lstm.h"

#include <algorithm>
#include <cstring>

#include "worker/ops/cpu/recurrent_op.h"
#include "worker/ops/cpu/registration.h"
#include "worker/ops/lstm_element.h"

namespace lockstep::worker::cpu {
namespace {

class LstmOp : public RecurrentOp {
  static constexpr int kGates = 4;  // i, f, c, o

 public:
  LstmOp(OneDnn* onednn, const LstmOptions& options)
      : RecurrentOp(onednn, options, kGates, /*reset_after=*/false),
        cells_((options.time + 1) * options.batch * options.units),
        dc_(options.training ? options.batch * options.units : 0) {}

 private:
  float* Cells(int64_t step) { return &cells_[step * batch() * units()]; }

  void BeginForward(const ForwardArgs& args) override {
    CopyState(has_initial_states() ? &args.inputs[2] : nullptr, Cells(0));
  }

  void Activate(int64_t step, int64_t begin, int64_t end) override {
    const int64_t n = units();
    for (int64_t row = begin; row < end; ++row) {
      float* __restrict const g = Gates(step) + row * kGates * n;
      const float* __restrict const s = StateGates(step) + row * kGates * n;
      const float* __restrict const before = Cells(step) + row * n;
      float* __restrict const cell = Cells(step + 1) + row * n;
      float* __restrict const hidden = Hidden(step + 1) + row * n;
      for (int64_t j = 0; j < n; ++j) {
        const LstmGates gates = ActivateLstm({g[j], g[n + j], g[2 * n + j], g[3 * n + j]},
                                             {s[j], s[n + j], s[2 * n + j], s[3 * n + j]});
        cell[j] = LstmCell(gates, before[j]);
        hidden[j] = LstmHidden(gates, cell[j]);
        g[j] = gates.i;
        g[n + j] = gates.f;
        g[2 * n + j] = gates.c;
        g[3 * n + j] = gates.o;
      }
    }
  }

  void BeginBackward() override { std::ranges::fill(dc_, 0.0f); }

  void Differentiate(int64_t step, int64_t begin, int64_t end, float* gradient) override {
    const int64_t n = units();
    for (int64_t row = begin; row < end; ++row) {
      float* __restrict const g = Gates(step) + row * kGates * n;
      const float* __restrict const before = Cells(step) + row * n;
      const float* __restrict const cell = Cells(step + 1) + row * n;
      float* __restrict const dh = gradient + row * n;
      float* __restrict const dc = &dc_[row * n];
      for (int64_t j = 0; j < n; ++j) {
        const LstmGradients gradients = DifferentiateLstm(
            {g[j], g[n + j], g[2 * n + j], g[3 * n + j]}, before[j], cell[j], dh[j], dc[j]);
        g[j] = gradients.sums.i;
        g[n + j] = gradients.sums.f;
        g[2 * n + j] = gradients.sums.c;
        g[3 * n + j] = gradients.sums.o;
        dc[j] = gradients.before;
        dh[j] = 0;
      }
    }
  }

  void EndBackward(const BackwardArgs& args) override {
    if (!has_initial_states() || args.input_gradients[2].data == nullptr) return;
    std::memcpy(args.input_gradients[2].data, dc_.data(), dc_.size() * sizeof(float));
  }

  std::vector<float> cells_;  // [time + 1, batch, units]: c before each step, and the last
  std::vector<float> dc_;     // [batch, units]: the gradient of c, back to the step in hand
};

std::unique_ptr<Op> MakeLstm(OneDnn* onednn, const LstmOptions& options) {
  return std::make_unique<LstmOp>(onednn, options);
}

const Registration<&MakeLstm> kLstm;

}  // namespace
}  // namespace lockstep::worker::cpu
