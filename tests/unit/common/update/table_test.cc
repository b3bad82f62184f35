#include "common/update/table.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

namespace lockstep {
namespace {

constexpr int64_t kRows = 6;
constexpr int64_t kWidth = 3;
constexpr uint64_t kRowBytes = kWidth * sizeof(float);

// Element i is i.
Tensor Counting() {
  Tensor tensor(DType::kFloat32, Shape({kRows, kWidth}));
  std::iota(tensor.as<float>().begin(), tensor.as<float>().end(), 0.0f);
  return tensor;
}

// Adds 100 to these rows in this version.
void Add100(Table* table, int64_t version, std::vector<int64_t> rows) {
  table->MakeNext(GlobalStep(version), rows, [&rows](const Table::Change& change) {
    // In two parts, as threads would.
    const size_t half = rows.size() / 2;
    change.Keep(half, rows.size());
    change.Keep(0, half);
    for (const int64_t row : rows) {
      for (float& element : change.value().as<float>().subspan(row * kWidth, kWidth)) {
        element += 100;
      }
    }
  });
}

// The first elements of these rows; nothing when the version cannot be read.
std::vector<float> Firsts(const Table& table, int64_t version, std::vector<int64_t> rows) {
  std::vector<float> copy(rows.size() * kWidth);
  if (!table.CopyRows(GlobalStep(version), rows, reinterpret_cast<std::byte*>(copy.data()))) {
    return {};
  }
  std::vector<float> firsts;
  for (size_t i = 0; i < rows.size(); ++i) firsts.push_back(copy[i * kWidth]);
  return firsts;
}

TEST_CASE("the newest version is read, and the one before it from what was kept") {
  Table table(Counting(), GlobalStep(7), Table::kPrevious, nullptr);
  CHECK(Firsts(table, 7, {5, 0, 0}) == std::vector<float>{15, 0, 0});
  CHECK(Firsts(table, 6, {0}).empty());
  Add100(&table, 8, {1, 4, 5});
  CHECK(Firsts(table, 8, {5, 4, 0}) == std::vector<float>{115, 112, 0});
  CHECK(Firsts(table, 7, {5, 4, 0, 5}) == std::vector<float>{15, 12, 0, 15});
  Add100(&table, 9, {0});
  CHECK(Firsts(table, 9, {5, 4, 0}) == std::vector<float>{115, 112, 100});
  CHECK(Firsts(table, 8, {5, 4, 0}) == std::vector<float>{115, 112, 0});
  CHECK(Firsts(table, 7, {5}).empty());
  Add100(&table, 10, {});
  CHECK(Firsts(table, 9, {0}) == std::vector<float>{100});
  CHECK(Firsts(table, 10, {0}) == std::vector<float>{100});
}

TEST_CASE("versions of steps that leave the table as it was are its newest value") {
  SeqLock seq_lock;
  Table table(Counting(), GlobalStep(0), Table::kPrevious, &seq_lock);
  Add100(&table, 1, {1});
  for (const int64_t version : {1, 2, 3}) {
    CAPTURE(version);
    CHECK(Firsts(table, version, {0, 1}) == std::vector<float>{0, 103});
    CHECK(seq_lock.StillHolds(version));
  }
  CHECK(Firsts(table, 0, {0, 1}) == std::vector<float>{0, 3});
  Add100(&table, 4, {0});
  CHECK(Firsts(table, 4, {0, 1}) == std::vector<float>{100, 103});
  CHECK(Firsts(table, 3, {0, 1}) == std::vector<float>{0, 103});
  CHECK(Firsts(table, 2, {0}).empty());
  CHECK(seq_lock.StillHolds(4));
  CHECK_FALSE(seq_lock.StillHolds(3));
}

TEST_CASE("bytes cut anywhere are those of their version") {
  Table table(Counting(), GlobalStep(0), Table::kPrevious, nullptr);
  const Tensor before = table.value()->Clone();
  Add100(&table, 1, {1, 2, 5});
  const Tensor after = table.value()->Clone();
  const uint64_t whole = kRows * kRowBytes;
  for (uint64_t begin = 0; begin <= whole; ++begin) {
    for (uint64_t end = begin; end <= whole; ++end) {
      std::vector<std::byte> copy(end - begin);
      for (const auto& [version, expected] : {std::pair(0, &before), std::pair(1, &after)}) {
        REQUIRE(table.CopyBytes(GlobalStep(version), begin, copy));
        const auto bytes = expected->view().bytes().subspan(begin, end - begin);
        REQUIRE(std::ranges::equal(copy, bytes));
      }
    }
  }
  Add100(&table, 2, {});
  CHECK_FALSE(table.CopyBytes(GlobalStep(0), 0, {}));
}

TEST_CASE("where versions do not count whatever is newest is read, and nothing is kept") {
  Table table(Counting(), GlobalStep(0), Table::kNewest, nullptr);
  Add100(&table, 1, {1});
  Add100(&table, 2, {1, 2});
  for (const int64_t version : {0, 1, 2}) {
    CHECK(Firsts(table, version, {1, 2, 3}) == std::vector<float>{203, 106, 9});
  }
}

TEST_CASE("rows without elements are rows, too") {
  Table table(Tensor(DType::kFloat32, Shape({4, 0})), GlobalStep(0), Table::kPrevious, nullptr);
  const std::vector<int64_t> rows = {1, 3};
  table.MakeNext(GlobalStep(1), rows, [](const Table::Change& change) { change.Keep(0, 2); });
  CHECK(table.CopyRows(GlobalStep(0), rows, nullptr));
  CHECK(table.CopyBytes(GlobalStep(0), 0, {}));
}

TEST_CASE("the sequence lock tells readers without a lock that the table is being changed") {
  SeqLock seq_lock;
  Table table(Counting(), GlobalStep(3), Table::kPrevious, &seq_lock);
  CHECK(seq_lock.StillHolds(3));
  const std::vector<int64_t> rows = {2};
  table.MakeNext(GlobalStep(4), rows, [&seq_lock](const Table::Change& change) {
    CHECK_FALSE(seq_lock.StillHolds(3));
    CHECK_FALSE(seq_lock.StillHolds(4));
    change.Keep(0, 1);
  });
  CHECK_FALSE(seq_lock.StillHolds(3));
  CHECK(seq_lock.StillHolds(4));
}

TEST_CASE("a table that begins at another step has that version alone, and is overwritten there") {
  Table table(Counting(), GlobalStep(7), Table::kPrevious, nullptr);
  Add100(&table, 8, {1, 4});
  table.RestartAt(GlobalStep(20));
  CHECK(Firsts(table, 20, {1, 0}) == std::vector<float>{103, 0});
  CHECK(Firsts(table, 19, {0}).empty());
  CHECK(Firsts(table, 8, {0}).empty());
  table.Overwrite().as<float>()[0] = 50;
  CHECK(Firsts(table, 20, {0}) == std::vector<float>{50});
  Add100(&table, 21, {0});
  CHECK(Firsts(table, 20, {0, 1}) == std::vector<float>{50, 103});
  CHECK(Firsts(table, 21, {0, 1}) == std::vector<float>{150, 103});
}

}  // namespace
}  // namespace lockstep
