// Against the formulas of lstm.h and gru.h in double, and plain loops. The derivatives of whole
// layers are checked by ops_cuda_test.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/unit/worker/ops/cuda/kernel_check.h"
#include "worker/ops/gru_element.h"
#include "worker/ops/lstm_element.h"

namespace lockstep::worker::cuda {
namespace {

constexpr int64_t kRows = 3;

void ForEachWidth(const std::function<void(const Grid&, int64_t)>& test) {
  for (const Grid& grid : {Grid{1, 1}, Grid{1, 32}, Grid{2, 64}, Grid{5, 256}}) {
    for (const int64_t units : {1, 31, 32, 65, 500}) {
      INFO(grid.blocks << " blocks of " << grid.threads << " threads, " << units << " units");
      test(grid, units);
    }
  }
}

const float* Read(Guarded<float>& numbers) { return numbers.data(); }

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
bool IsClose(double got, double wanted) { return std::abs(got - wanted) < 2e-6; }

TEST_CASE("outer dimensions are swapped, and rows are added where they lie") {
  ForEachWidth([](const Grid& grid, int64_t width) {
    constexpr int64_t kInner = 5;
    Guarded<float> from = Numbers(kRows * kInner * width, 2);
    Guarded<float> to(kRows * kInner * width);
    Launch("lockstep_swap_outer", grid, to.data(), Read(from), kRows, kInner, width);
    Guarded<float> sum = Numbers(kRows * width, 1);
    Guarded<float> before = sum;
    Launch("lockstep_add_rows", grid, sum.data(), Read(from), kInner * width, kRows, width);
    int64_t wrong = 0;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t c = 0; c < width; ++c) {
        for (int64_t i = 0; i < kInner; ++i) {
          wrong += to[(i * kRows + row) * width + c] != from[(row * kInner + i) * width + c];
        }
        const int64_t at = row * width + c;
        wrong += sum[at] != before[at] + from[row * kInner * width + c];
      }
    }
    CHECK(wrong == 0);
    CHECK((to.IsIntact() && sum.IsIntact()));
  });
}

TEST_CASE("a step of an LSTM equals its formula, and its gradient is that of each unit") {
  ForEachWidth([](const Grid& grid, int64_t units) {
    const int64_t n = kRows * units;
    Guarded<float> sums = Numbers(4 * n, 2);
    Guarded<float> gates = sums;
    Guarded<float> state = Numbers(4 * n, 1);
    Guarded<float> before = Numbers(n, 1);
    Guarded<float> cell(n);
    Guarded<float> hidden(n);
    Launch("lockstep_lstm", grid, gates.data(), Read(state), Read(before), cell.data(),
           hidden.data(), kRows, units);
    Guarded<float> gradients = gates;
    Guarded<float> dh = Numbers(n, 3);
    Guarded<float> dc = Numbers(n, 0.5f);
    Guarded<float> of_h = dh;
    Guarded<float> of_c = dc;
    Launch("lockstep_lstm_gradient", grid, gradients.data(), dh.data(), dc.data(), Read(before),
           Read(cell), kRows, units);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = i / units * 4 * units + i % units;
      const auto gate = [&](int64_t k) { return sums[at + k * units] + state[at + k * units]; };
      const double c = Sigmoid(gate(1)) * before[i] + Sigmoid(gate(0)) * std::tanh(double{gate(2)});
      wrong += !IsClose(cell[i], c);
      wrong += !IsClose(hidden[i], Sigmoid(gate(3)) * std::tanh(c));
      const LstmGradients wanted = DifferentiateLstm(
          {gates[at], gates[at + units], gates[at + 2 * units], gates[at + 3 * units]}, before[i],
          cell[i], of_h[i], of_c[i]);
      wrong += gradients[at] != wanted.sums.i || gradients[at + units] != wanted.sums.f;
      wrong += gradients[at + 2 * units] != wanted.sums.c;
      wrong += gradients[at + 3 * units] != wanted.sums.o;
      wrong += dc[i] != wanted.before || dh[i] != 0;
    }
    CHECK(wrong == 0);
    CHECK((gates.IsIntact() && cell.IsIntact() && hidden.IsIntact()));
    CHECK((gradients.IsIntact() && dh.IsIntact() && dc.IsIntact()));
  });
}

TEST_CASE("a step of a GRU equals its formula, and its gradient is that of each unit") {
  ForEachWidth([](const Grid& grid, int64_t units) {
    const int64_t n = kRows * units;
    Guarded<float> sums = Numbers(3 * n, 2);
    Guarded<float> gates = sums;
    Guarded<float> state = Numbers(3 * n, 1);
    Guarded<float> before = Numbers(n, 1);
    Guarded<float> hidden(n);
    Launch("lockstep_gru", grid, gates.data(), Read(state), Read(before), hidden.data(), kRows,
           units);
    Guarded<float> gradients = gates;
    Guarded<float> of_state = state;
    Guarded<float> dh = Numbers(n, 3);
    Guarded<float> of_h = dh;
    Launch("lockstep_gru_gradient", grid, gradients.data(), of_state.data(), dh.data(),
           Read(before), kRows, units);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = i / units * 3 * units + i % units;
      const int64_t r_at = at + units;
      const int64_t h_at = at + 2 * units;
      const double z = Sigmoid(sums[at] + state[at]);
      const double r = Sigmoid(sums[r_at] + state[r_at]);
      const double candidate = std::tanh(sums[h_at] + r * state[h_at]);
      wrong += !IsClose(hidden[i], z * before[i] + (1 - z) * candidate);
      const GruGradients wanted =
          DifferentiateGru({gates[at], gates[r_at], gates[h_at]}, state[h_at], before[i], of_h[i]);
      wrong += gradients[at] != wanted.input.z || gradients[r_at] != wanted.input.r;
      wrong += gradients[h_at] != wanted.input.h || of_state[h_at] != wanted.state_h;
      wrong += of_state[at] != wanted.input.z || of_state[r_at] != wanted.input.r;
      wrong += dh[i] != wanted.before;
    }
    CHECK(wrong == 0);
    CHECK((gates.IsIntact() && hidden.IsIntact() && gradients.IsIntact()));
    CHECK((of_state.IsIntact() && dh.IsIntact()));
  });
}

}  // namespace
}  // namespace lockstep::worker::cuda
