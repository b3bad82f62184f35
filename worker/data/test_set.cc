#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/data/example_store.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {
namespace {

class StoredTestSet final : public TestSet {
 public:
  explicit StoredTestSet(ExampleStore store) : store_(std::move(store)) {}

  int64_t num_examples() const override { return store_.num_examples(); }
  bool has_labels() const override { return store_.has_labels(); }

  absl::StatusOr<Batch> Read(int64_t begin, int64_t end) const override {
    if (begin < 0 || begin > end || end > num_examples()) {
      return absl::InvalidArgumentError(absl::StrCat("test examples: expected a range within [0,",
                                                     num_examples(), "), got [", begin, ",", end,
                                                     ")"));
    }
    Batch batch = store_.MakeBatch(end - begin);
    for (int64_t row = 0; row < end - begin; ++row) store_.CopyTo(begin + row, row, &batch);
    return batch;
  }

 private:
  const ExampleStore store_;
};

}  // namespace

bool HasTestSet(const DataDef& data) {
  if (data.has_text()) return !data.text().has_held_out() || data.text().held_out() > 0;
  return data.has_idx() ? !data.idx().test_images().empty() : !data.csv().test().empty();
}

absl::StatusOr<std::unique_ptr<TestSet>> TestSet::Open(const DataDef& data,
                                                       const ExampleSpec& spec) {
  LOCKSTEP_ASSIGN_OR_RETURN(auto store, ExampleStore::Open(data, Split::kTest, spec));
  return std::make_unique<StoredTestSet>(std::move(store));
}

}  // namespace lockstep::worker
