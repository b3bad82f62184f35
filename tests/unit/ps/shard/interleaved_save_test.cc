// Training goes on while a checkpoint is written: in every order of a few updates and the reads of
// the writer the file has the bytes of the version that it is of.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/momentum.h"
#include "common/update/dense_update.h"
#include "common/update/sparse_update.h"
#include "ps/shard/copy_on_write.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::ps {
namespace {

using lockstep::test::TemporaryFolder;

constexpr size_t kRange = DenseUpdate::kRangeBytes / sizeof(float);
constexpr auto kElements = static_cast<int64_t>(kRange + 1000);  // two ranges
constexpr int64_t kRows = 40;
constexpr int64_t kWidth = 16;

Tensor Filled(const Shape& shape, int seed) {
  Tensor tensor(DType::kFloat32, shape);
  int number = seed;
  for (float& element : tensor.as<float>()) element = static_cast<float>(number++ % 97) / 97;
  return tensor;
}

std::vector<Tensor> SlotsOf(const UpdateRule& rule, const Shape& shape) {
  std::vector<Tensor> slots;
  for (size_t i = 0; i < rule.slots().size(); ++i)
    slots.push_back(Tensor::Zeros(DType::kFloat32, shape));
  return slots;
}

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A dense variable of two ranges and a sparse one, which is a table where the rule allows.
class Training {
 public:
  explicit Training(const UpdateRule& rule)
      : rule_(rule),
        scalars_(InitialScalars(rule)),
        dense_("dense", true, Filled(Shape({kElements}), 1), GlobalStep(0),
               SlotsOf(rule, Shape({kElements}))),
        gradient_(Filled(Shape({kElements}), 11)),
        rows_{Filled(Shape({3, kWidth}), 5), Filled(Shape({3, kWidth}), 17)} {
    const Shape shape({kRows, kWidth});
    if (rule.TouchesOnlyRows()) {
      const auto table =
          std::make_shared<Table>(Filled(shape, 2), GlobalStep(0), Table::kPrevious, nullptr);
      table_copies_ = std::make_unique<CopyOnWrite>(table->value(), kWidth * sizeof(float));
      sparse_.emplace("sparse", table, GlobalStep(0), SlotsOf(rule, shape));
    } else {
      sparse_.emplace("sparse", true, Filled(shape, 2), GlobalStep(0), SlotsOf(rule, shape));
    }
    Observe(&dense_, DenseUpdate::kRangeBytes, nullptr, &dense_copies_);
    Observe(&*sparse_, kWidth * sizeof(float), table_copies_.get(), &sparse_copies_);
  }

  // Of the version at hand. In the order in which a shard makes updates: those of the next step
  // begin when both variables have been published.
  static constexpr size_t kUpdatesOfStep = 3;
  void UpdateNext() {
    switch (next_++ % kUpdatesOfStep) {
      case 0:
        update_.emplace(dense_.newest_version(), 0.1f, rule_, scalars_, &dense_);
        update_->SetGradients({{gradient_.view(), nullptr}}, 1);
        return update_->Make(1);
      case 1:
        return UpdateRows();
      default:
        update_->Make(0);
        dense_.Publish(update_->Finish());
        sparse_->Publish(std::move(next_sparse_));
        rule_.AdvanceScalars(absl::MakeSpan(scalars_));
    }
  }

  void Step() {
    for (size_t i = 0; i < kUpdatesOfStep; ++i) UpdateNext();
  }

  // Keeps the version at hand and writes it; before_read is called before each read of the writer.
  std::string Save(const std::string& folder, const std::function<void()>& before_read) {
    const auto dense = dense_.newest();
    const auto sparse = sparse_->newest();
    std::vector<std::shared_ptr<const TensorSnapshot>> snapshots;
    std::vector<NamedTensor> tensors = {{"dense", dense->view()}};
    const auto add = [&](const std::string& name, CopyOnWrite* copies) {
      const TensorSnapshot* const snapshot = snapshots.emplace_back(copies->TakeSnapshot()).get();
      tensors.push_back({name,
                         {snapshot->dtype(), snapshot->shape(), nullptr},
                         [=](uint64_t offset, std::span<std::byte> to) {
                           ReadByPages(*snapshot, offset, to, before_read);
                         }});
    };
    if (table_copies_ != nullptr) {
      add("sparse", table_copies_.get());
    } else {
      tensors.push_back({"sparse", sparse->view()});
    }
    for (size_t slot = 0; slot < rule_.slots().size(); ++slot) {
      add("dense/" + rule_.slots()[slot].name, dense_copies_[slot].get());
      add("sparse/" + rule_.slots()[slot].name, sparse_copies_[slot].get());
    }
    const auto written = WriteShard(folder, 0, 1, tensors);
    REQUIRE(written.ok());
    return ContentsOf(folder + "/" + written->file);
  }

 private:
  // A range of a dense update at a time.
  static void ReadByPages(const TensorSnapshot& snapshot, uint64_t offset, std::span<std::byte> to,
                          const std::function<void()>& before_read) {
    while (!to.empty()) {
      const size_t size = std::min(to.size(), DenseUpdate::kRangeBytes);
      before_read();
      snapshot.CopyBytes(offset, to.first(size));
      offset += size;
      to = to.subspan(size);
    }
  }

  static void Observe(Variable* variable, size_t page_bytes, CopyOnWrite* of_table,
                      std::vector<std::unique_ptr<CopyOnWrite>>* copies) {
    std::vector<WriteObserver*> observers;
    for (size_t slot = 0; slot < variable->slots().size(); ++slot) {
      copies->push_back(std::make_unique<CopyOnWrite>(variable->slot(slot), page_bytes));
      observers.push_back(copies->back().get());
    }
    variable->SetObservers(std::move(observers), of_table);
  }

  void UpdateRows() {
    const std::vector<int64_t> indices[] = {{1, 7, 30}, {7, 8, 39}};
    const std::vector<IndexedSlicesView> gradients = {{indices[0], rows_[0].view()},
                                                      {indices[1], rows_[1].view()}};
    SparseUpdate update(sparse_->newest_version(), 0.1f, rule_, scalars_, &*sparse_);
    next_sparse_ = update.Make(
        gradients,
        [](size_t count, size_t, absl::FunctionRef<void(size_t, size_t)> work) { work(0, count); });
  }

  const UpdateRule& rule_;
  std::vector<float> scalars_;
  Variable dense_;
  std::optional<Variable> sparse_;
  const Tensor gradient_;
  const Tensor rows_[2];
  std::vector<std::unique_ptr<CopyOnWrite>> dense_copies_;
  std::vector<std::unique_ptr<CopyOnWrite>> sparse_copies_;
  std::unique_ptr<CopyOnWrite> table_copies_;
  std::optional<DenseUpdate> update_;
  NextValue next_sparse_;
  size_t next_ = 0;
};

void CheckAllOrders(const UpdateRule& rule) {
  constexpr size_t kUpdates = Training::kUpdatesOfStep + 1;
  const TemporaryFolder folder;
  const std::string no_syncs = lockstep::test::NoSyncsBelow(folder.path());
  lockstep::test::SetDiskFaults(no_syncs);
  size_t num_reads = 0;
  std::string expected;
  {
    Training training(rule);
    training.Step();
    expected = training.Save(folder.path(), [&] { ++num_reads; });
    training.Step();
    CHECK(training.Save(folder.path(), [] {}) != expected);
  }
  // U: an update. r: a read.
  std::string order = std::string(kUpdates, 'U') + std::string(num_reads, 'r');
  size_t num_orders = 0;
  do {
    lockstep::test::SetDiskFaults(no_syncs);  // forgets what was written
    Training training(rule);
    training.Step();
    auto next = order.begin();
    const std::string written = training.Save(folder.path(), [&] {
      for (; *next == 'U'; ++next) training.UpdateNext();
      ++next;
    });
    if (written != expected) FAIL("other bytes in the order " << order);
    ++num_orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(num_orders >= 70);
  lockstep::test::SetDiskFaults("");
}

TEST_CASE("what is saved while momentum trains on is the version that was kept") {
  CheckAllOrders(*MakeMomentum({.momentum = 0.9f}));
}

TEST_CASE("what is saved while Adam trains on, every row of it, is the version that was kept") {
  CheckAllOrders(*MakeAdam({}));
}

TEST_CASE("what is saved while lazy Adam changes rows of a table is the version that was kept") {
  CheckAllOrders(*MakeAdam({.lazy = true}));
}

}  // namespace
}  // namespace lockstep::ps
