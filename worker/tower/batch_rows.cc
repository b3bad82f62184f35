#include "worker/tower/batch_rows.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/base/check.h"
#include "common/base/checked.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBits = 64;

size_t WordsFor(size_t bits) { return (bits + kBits - 1) / kBits; }

void Set(int64_t bit, std::vector<uint64_t>* bits) {
  (*bits)[bit / kBits] |= uint64_t{1} << bit % kBits;
}

// use(position) for each bit that is set, ascending; all are 0 afterwards.
template <typename Use>
void TakeBits(uint64_t* word, Use use) {
  for (uint64_t bits = std::exchange(*word, 0); bits != 0; bits &= bits - 1) {
    use(std::countr_zero(bits));
  }
}

}  // namespace

void BatchRows::Mark(const Batch& batch, Table* table) {
  const IndexColumns& index = table->index;
  const TensorView features = batch.feature_rows();
  const int64_t columns = features.num_elements() / batch.size();
  const float* example = features.as<float>().data() + index.columns.first;
  for (int64_t i = 0; i < batch.size(); ++i, example += columns) {
    for (int64_t c = 0; c < index.columns.count; ++c) {
      const int64_t row = static_cast<int64_t>(example[c]);
      LOCKSTEP_CHECK(row >= 0 && row < index.rows);
      Set(row, &table->seen);
      Set(row / kBits, &table->seen_words);
    }
  }
}

void BatchRows::ListMarked(Table* table) {
  table->rows.clear();
  for (size_t i = 0; i < table->seen_words.size(); ++i) {
    TakeBits(&table->seen_words[i], [&](int of_word) {
      const int64_t word = static_cast<int64_t>(i) * kBits + of_word;
      TakeBits(&table->seen[word], [&](int bit) { table->rows.push_back(word * kBits + bit); });
    });
  }
}

BatchRows::BatchRows(const ModelGraph& graph) : rows_(graph.variables().size()) {
  for (const IndexColumns& index : IndexColumnsOf(graph)) {
    const size_t words = WordsFor(index.rows);
    tables_.push_back(
        {index, std::vector<uint64_t>(words), std::vector<uint64_t>(WordsFor(words)), {}});
  }
}

std::vector<int64_t> BatchRows::MostRows(int64_t examples) const {
  std::vector<int64_t> most(rows_.size());
  for (const Table& table : tables_) {
    const std::optional<int64_t> lookups = CheckedMultiply(examples, table.index.columns.count);
    most[table.index.variable] = std::min(table.index.rows, lookups.value_or(table.index.rows));
  }
  return most;
}

void BatchRows::Collect(std::span<const Batch> batches) {
  for (Table& table : tables_) {
    for (const Batch& batch : batches) {
      if (batch.size() > 0) Mark(batch, &table);
    }
    ListMarked(&table);
    rows_[table.index.variable] = table.rows;
  }
}

Shape MostOf(const ModelVariable& variable, int64_t most_rows) {
  return variable.sparse ? WithRows(variable.shape, most_rows) : variable.shape;
}

}  // namespace lockstep::worker
