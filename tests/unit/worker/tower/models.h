// Small models with every kind of layer, and data for them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/model/graph.h"
#include "common/tensor/tensor_maker.h"
#include "tests/reference/array.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// From a model file's text; REQUIREs that it is sound.
ModelGraph GraphOf(const std::string& text);

// conv, pool, conv, pool, dense, dense on 10x9x2 images.
extern const char kLeNet[];
// Two branches with batch norm, joined by add, then by concatenate; a value read three times.
extern const char kResidual[];
// A chain on 4x4x3 images that begins with what needs no gradient and ends in an L2 loss.
extern const char kRegression[];

// Embeddings of the first three of seven columns, by sum and side by side with the other four.
extern const char kWideAndDeep[];

// An embedding of seven time steps, an LSTM that begins with states computed from them, a GRU, and
// a label for each step.
extern const char kSequences[];

// An LSTM and a GRU over [6, 3] that begin with state inputs, of which the GRU's first goes through
// a layer; a label for each step.
extern const char kStates[];

// Fixed values for the variables; a moving variance is positive.
std::vector<reference::Array> VariablesOf(const ModelGraph& graph);

// `first`: where in an endless series of examples the batch begins. Row indices are sound.
Batch BatchOf(const ModelGraph& graph, int64_t size, int64_t first = 0);

// Owns what a pass reads and writes. Tables are whole; frozen variables have no gradient.
struct Operands {
  explicit Operands(const ModelGraph& graph, const TensorMaker& make_gradient = OnHeap);
  std::vector<Tensor> variables;
  std::vector<Tensor> gradients;
  std::vector<TensorView> variable_views;
  std::vector<MutableTensorView> gradient_views;
};

// The same with tables in part: these rows of them, taken out of `whole`.
struct PartOperands {
  PartOperands(const ModelGraph& graph, Operands* whole,
               std::span<const std::span<const int64_t>> rows);
  std::vector<TensorView> views;
  std::vector<MutableTensorView> gradient_views;
  std::vector<Tensor> tables;  // values and gradients in turn
};

// Equal to the last bit.
bool SameBits(const Tensor& a, const Tensor& b);

}  // namespace lockstep::worker
