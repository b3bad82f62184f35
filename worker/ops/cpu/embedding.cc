#include "worker/ops/embedding.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "common/base/check.h"
#include "worker/ops/cpu/cpu_op.h"
#include "worker/ops/cpu/held_rows.h"
#include "worker/ops/cpu/parallel.h"
#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {
namespace {

class EmbeddingOp : public CpuOp {
 public:
  explicit EmbeddingOp(const EmbeddingOptions& options)
      : options_(options), positions_(options.batch * options.indices), held_(options.rows) {}

  void RunForward(const ForwardArgs& args) override {
    FindPositions(args.inputs[0].as<float>().data(), args.rows);
    const float* const table = static_cast<const float*>(args.variables[0].data);
    float* const output = args.output.as<float>().data();
    ParallelFor(options_.batch, Grain(options_.indices * options_.dim),
                [&](int, int64_t begin, int64_t end) {
                  for (int64_t example = begin; example < end; ++example) {
                    Combine(table, &positions_[example * options_.indices],
                            output + example * OutputSize());
                  }
                });
  }

  // Each part of the table's rows goes through all occurrences, so that every row is summed in one
  // order.
  void RunBackward(const BackwardArgs& args) override {
    if (!options_.variable_gradients) return;
    const int64_t dim = options_.dim;
    const float* const from = args.output_gradient.as<float>().data();
    float* const to = static_cast<float*>(args.variable_gradients[0].data);
    const int64_t occurrences = static_cast<int64_t>(positions_.size());
    const int64_t repeats = options_.combiner == EmbeddingCombiner::kSum ? options_.indices : 1;
    ParallelFor(num_held_, Grain(dim), [&](int, int64_t begin, int64_t end) {
      std::fill(to + begin * dim, to + end * dim, 0.0f);
      for (int64_t i = 0; i < occurrences; ++i) {
        if (positions_[i] < begin || positions_[i] >= end) continue;
        const float* const gradient = from + i / repeats * dim;
        float* const row = to + positions_[i] * dim;
        for (int64_t d = 0; d < dim; ++d) row[d] += gradient[d];
      }
    });
  }

 private:
  static int64_t Grain(int64_t elements) { return std::max<int64_t>(kElementGrain / elements, 1); }

  int64_t OutputSize() const {
    return options_.combiner == EmbeddingCombiner::kSum ? options_.dim
                                                        : options_.indices * options_.dim;
  }

  // Where in the variable each index of the batch has its row.
  void FindPositions(const float* indices, std::span<const TableRows> rows) {
    const bool whole = rows.empty();
    num_held_ = whole ? options_.rows : *rows[0].count;
    if (!whole) held_.Set({rows[0].rows, static_cast<size_t>(num_held_)});
    for (size_t i = 0; i < positions_.size(); ++i) {
      const int64_t row = static_cast<int64_t>(indices[i]);
      LOCKSTEP_CHECK(row >= 0 && row < options_.rows);
      positions_[i] = whole ? row : held_.PositionOf(row);
    }
  }

  void Combine(const float* table, const int64_t* positions, float* output) const {
    const int64_t dim = options_.dim;
    for (int64_t i = 0; i < options_.indices; ++i) {
      const float* const row = table + positions[i] * dim;
      if (options_.combiner == EmbeddingCombiner::kConcatenate || i == 0) {
        std::memcpy(output + i * dim, row, dim * sizeof(float));
      } else {
        for (int64_t d = 0; d < dim; ++d) output[d] += row[d];
      }
    }
  }

  const EmbeddingOptions options_;
  // Of the last Forward.
  std::vector<int64_t> positions_;  // [batch, indices]
  HeldRows held_;                   // by the variable, if it was not whole
  int64_t num_held_ = 0;            // rows of the variable
};

std::unique_ptr<Op> MakeEmbedding(OneDnn*, const EmbeddingOptions& options) {
  return std::make_unique<EmbeddingOp>(options);
}

const Registration<&MakeEmbedding> kEmbedding;

}  // namespace
}  // namespace lockstep::worker::cpu
