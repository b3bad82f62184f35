#include "worker/tower/batch_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBits = 64;

void Mark(const Batch& batch, const IndexColumns& index, std::vector<uint64_t>* seen) {
  const int64_t columns = batch.features.num_elements() / batch.size();
  const float* example = batch.features.as<float>().data() + index.columns.first;
  for (int64_t i = 0; i < batch.size(); ++i, example += columns) {
    for (int64_t c = 0; c < index.columns.count; ++c) {
      const int64_t row = static_cast<int64_t>(example[c]);
      LOCKSTEP_CHECK(row >= 0 && row < index.rows);
      (*seen)[row / kBits] |= uint64_t{1} << row % kBits;
    }
  }
}

// Lists what is marked and takes the marks away.
void List(std::vector<uint64_t>* seen, std::vector<int64_t>* rows) {
  rows->clear();
  for (size_t word = 0; word < seen->size(); ++word) {
    for (uint64_t bits = std::exchange((*seen)[word], 0); bits != 0; bits &= bits - 1) {
      rows->push_back(static_cast<int64_t>(word) * kBits + std::countr_zero(bits));
    }
  }
}

}  // namespace

BatchRows::BatchRows(const ModelGraph& graph) : rows_(graph.variables().size()) {
  for (const IndexColumns& index : IndexColumnsOf(graph)) {
    tables_.push_back({index, std::vector<uint64_t>((index.rows + kBits - 1) / kBits), {}});
  }
}

void BatchRows::Collect(std::span<const Batch> batches) {
  for (Table& table : tables_) {
    for (const Batch& batch : batches) {
      if (batch.size() > 0) Mark(batch, table.index, &table.seen);
    }
    List(&table.seen, &table.rows);
    rows_[table.index.variable] = table.rows;
  }
}

}  // namespace lockstep::worker
