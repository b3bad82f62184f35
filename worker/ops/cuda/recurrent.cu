#include "worker/ops/cuda/column_loop.cuh"
#include "worker/ops/cuda/recurrent.cuh"
#include "worker/ops/gru_element.h"
#include "worker/ops/lstm_element.h"

using lockstep::worker::ActivateGru;
using lockstep::worker::ActivateLstm;
using lockstep::worker::DifferentiateGru;
using lockstep::worker::DifferentiateLstm;
using lockstep::worker::GruGates;
using lockstep::worker::GruGradients;
using lockstep::worker::GruHidden;
using lockstep::worker::LstmCell;
using lockstep::worker::LstmGates;
using lockstep::worker::LstmGradients;
using lockstep::worker::LstmHidden;
using lockstep::worker::cuda::ForEachElement;
using lockstep::worker::cuda::ForEachInColumns;

namespace {

// Of the unit whose first gate is at `gates`; the next ones are `units` apart.
LOCKSTEP_DEVICE LstmGates ReadLstm(const float* gates, int64_t units) {
  return {gates[0], gates[units], gates[2 * units], gates[3 * units]};
}
LOCKSTEP_DEVICE void WriteLstm(float* gates, int64_t units, const LstmGates& values) {
  gates[0] = values.i;
  gates[units] = values.f;
  gates[2 * units] = values.c;
  gates[3 * units] = values.o;
}
LOCKSTEP_DEVICE GruGates ReadGru(const float* gates, int64_t units) {
  return {gates[0], gates[units], gates[2 * units]};
}
LOCKSTEP_DEVICE void WriteGru(float* gates, int64_t units, const GruGates& values) {
  gates[0] = values.z;
  gates[units] = values.r;
  gates[2 * units] = values.h;
}

// Where the gates of unit i begin: i = row * units + unit.
LOCKSTEP_DEVICE int64_t FirstGate(int64_t i, int64_t unit, int64_t num_gates) {
  return (i - unit) * num_gates + unit;
}

}  // namespace

LOCKSTEP_KERNEL void lockstep_add_rows(float* to, const float* from, int64_t stride, int64_t rows,
                                       int64_t width) {
  ForEachInColumns(rows, width, [=](int64_t i, int64_t row, int64_t column) {
    to[i] += from[row * stride + column];
  });
}

LOCKSTEP_KERNEL void lockstep_lstm(float* gates, const float* state, const float* before,
                                   float* cell, float* hidden, int64_t rows, int64_t units) {
  ForEachElement(rows * units, [=](int64_t i) {
    const int64_t unit = i % units;
    const int64_t first = FirstGate(i, unit, 4);
    const LstmGates active =
        ActivateLstm(ReadLstm(gates + first, units), ReadLstm(state + first, units));
    cell[i] = LstmCell(active, before[i]);
    hidden[i] = LstmHidden(active, cell[i]);
    WriteLstm(gates + first, units, active);
  });
}

LOCKSTEP_KERNEL void lockstep_lstm_gradient(float* gates, float* dh, float* dc, const float* before,
                                            const float* cell, int64_t rows, int64_t units) {
  ForEachElement(rows * units, [=](int64_t i) {
    const int64_t unit = i % units;
    const int64_t first = FirstGate(i, unit, 4);
    const LstmGradients gradients =
        DifferentiateLstm(ReadLstm(gates + first, units), before[i], cell[i], dh[i], dc[i]);
    WriteLstm(gates + first, units, gradients.sums);
    dc[i] = gradients.before;
    dh[i] = 0;
  });
}

LOCKSTEP_KERNEL void lockstep_gru(float* gates, const float* state, const float* before,
                                  float* hidden, int64_t rows, int64_t units) {
  ForEachElement(rows * units, [=](int64_t i) {
    const int64_t unit = i % units;
    const int64_t first = FirstGate(i, unit, 3);
    const GruGates active =
        ActivateGru(ReadGru(gates + first, units), ReadGru(state + first, units));
    hidden[i] = GruHidden(active, before[i]);
    WriteGru(gates + first, units, active);
  });
}

LOCKSTEP_KERNEL void lockstep_gru_gradient(float* gates, float* state, float* dh,
                                           const float* before, int64_t rows, int64_t units) {
  ForEachElement(rows * units, [=](int64_t i) {
    const int64_t unit = i % units;
    const int64_t first = FirstGate(i, unit, 3);
    float* const of_state = state + first;
    const GruGradients gradients =
        DifferentiateGru(ReadGru(gates + first, units), of_state[2 * units], before[i], dh[i]);
    WriteGru(of_state, units, {gradients.input.z, gradients.input.r, gradients.state_h});
    WriteGru(gates + first, units, gradients.input);
    dh[i] = gradients.before;
  });
}
