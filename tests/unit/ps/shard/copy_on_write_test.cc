#include "ps/shard/copy_on_write.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace lockstep::ps {
namespace {

constexpr size_t kPages = 3;
constexpr size_t kPageBytes = 8;
constexpr size_t kBytes = (kPages - 1) * kPageBytes + 5;  // the last page is shorter

std::shared_ptr<Tensor> MakeLive(size_t bytes = kBytes) {
  auto live = std::make_shared<Tensor>(DType::kUInt8, Shape({static_cast<int64_t>(bytes)}));
  std::iota(live->as<uint8_t>().begin(), live->as<uint8_t>().end(), uint8_t{1});
  return live;
}

std::vector<uint8_t> BytesOf(const Tensor& tensor) {
  return {tensor.as<uint8_t>().begin(), tensor.as<uint8_t>().end()};
}

std::vector<uint8_t> Read(const TensorSnapshot& snapshot, uint64_t offset, size_t size) {
  std::vector<uint8_t> bytes(size);
  snapshot.CopyBytes(offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::vector<uint8_t> ReadAll(const TensorSnapshot& snapshot) {
  return Read(snapshot, 0, static_cast<size_t>(snapshot.shape().num_elements()));
}

ByteRange PageRange(size_t page) {
  return {page * kPageBytes, std::min((page + 1) * kPageBytes, kBytes)};
}

void Write(CopyOnWrite* copies, Tensor* live, ByteRange range, uint8_t value) {
  copies->BeforeWrite(range);
  std::fill(live->as<uint8_t>().begin() + range.begin, live->as<uint8_t>().begin() + range.end,
            value);
}

TEST_CASE("a snapshot is the tensor as it was, in every order of writes and reads of its pages") {
  const auto first = BytesOf(*MakeLive());
  std::vector<size_t> order(2 * kPages);  // writes, then reads, by page
  std::iota(order.begin(), order.end(), size_t{0});
  int num_orders = 0;
  do {
    const auto live = MakeLive();
    CopyOnWrite copies(live, kPageBytes);
    const auto snapshot = copies.TakeSnapshot();
    bool is_same = true;
    for (const size_t one : order) {
      const ByteRange range = PageRange(one % kPages);
      if (one < kPages) {
        Write(&copies, live.get(), range, 0);
      } else {
        const auto got = Read(*snapshot, range.begin, range.end - range.begin);
        is_same =
            is_same && std::ranges::equal(got, std::span(first).subspan(range.begin, got.size()));
      }
    }
    if (!is_same || ReadAll(*snapshot) != first) FAIL("order " << Catch::Detail::stringify(order));
    CHECK(BytesOf(*live) == std::vector<uint8_t>(kBytes, 0));
    ++num_orders;
  } while (std::ranges::next_permutation(order).found);
  CHECK(num_orders == 720);
}

TEST_CASE("reads and writes may begin and end inside pages") {
  const auto live = MakeLive();
  const auto first = BytesOf(*live);
  CopyOnWrite copies(live, kPageBytes);
  const auto snapshot = copies.TakeSnapshot();
  Write(&copies, live.get(), {7, 9}, 0);
  Write(&copies, live.get(), {9, 9}, 0);
  Write(&copies, live.get(), {8, 12}, 200);
  for (size_t begin = 0; begin <= kBytes; ++begin) {
    for (size_t end = begin; end <= kBytes; ++end) {
      const auto got = Read(*snapshot, begin, end - begin);
      CHECK(std::ranges::equal(got, std::span(first).subspan(begin, end - begin)));
    }
  }
}

TEST_CASE("each of several snapshots is the tensor as it was when that one was taken") {
  const auto live = MakeLive();
  CopyOnWrite copies(live, kPageBytes);
  std::vector<std::shared_ptr<const TensorSnapshot>> snapshots;
  std::vector<std::vector<uint8_t>> expected;
  for (uint8_t value = 100; value < 106; ++value) {
    snapshots.push_back(copies.TakeSnapshot());
    expected.push_back(BytesOf(*live));
    Write(&copies, live.get(), PageRange(value % kPages), value);
    if (value == 103) {
      snapshots.erase(snapshots.begin());
      expected.erase(expected.begin());
    }
  }
  for (size_t i = 0; i < snapshots.size(); ++i) CHECK(ReadAll(*snapshots[i]) == expected[i]);
}

TEST_CASE("rows are copied before they change, small ones with their neighbours") {
  constexpr size_t kRowBytes = 3;
  const auto live = MakeLive(30);
  const auto first = BytesOf(*live);
  CopyOnWrite copies(live, kPageBytes);
  const auto snapshot = copies.TakeSnapshot();
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{0, 2}, {1, 9}, {2, 5}}) {
    copies.BeforeWriteRows(rows, kRowBytes);
    for (const int64_t row : rows) {
      std::fill_n(live->as<uint8_t>().begin() + row * kRowBytes, kRowBytes, uint8_t{0});
    }
  }
  CHECK(ReadAll(*snapshot) == first);
  std::vector<uint8_t> got(3 * kRowBytes);
  snapshot->CopyRows({9, 4, 0}, kRowBytes, std::as_writable_bytes(std::span(got)).data());
  CHECK(got == std::vector<uint8_t>{28, 29, 30, 13, 14, 15, 1, 2, 3});
}

TEST_CASE("a snapshot stays whole when the tensor's owner has gone") {
  auto live = MakeLive();
  const auto first = BytesOf(*live);
  auto copies = std::make_unique<CopyOnWrite>(live, kPageBytes);
  const auto snapshot = copies->TakeSnapshot();
  Write(copies.get(), live.get(), PageRange(1), 0);
  copies.reset();
  live.reset();
  CHECK(ReadAll(*snapshot) == first);
}

TEST_CASE("a tensor without bytes has snapshots without bytes") {
  CopyOnWrite copies(MakeLive(0), kPageBytes);
  const auto snapshot = copies.TakeSnapshot();
  copies.BeforeWrite({0, 0});
  CHECK(ReadAll(*snapshot).empty());
}

TEST_CASE("pages of a released snapshot serve the next one, which has none of its bytes") {
  const auto live = MakeLive();
  CopyOnWrite copies(live, kPageBytes);
  for (uint8_t value = 50; value < 55; ++value) {
    const auto snapshot = copies.TakeSnapshot();
    const auto now = BytesOf(*live);
    Write(&copies, live.get(), PageRange(value % kPages), value);
    CHECK(ReadAll(*snapshot) == now);
  }
}

TEST_CASE("threads write while others read snapshots") {
  constexpr size_t kLarge = 40 * kPageBytes;
  constexpr int kRounds = 200;
  const auto live = std::make_shared<Tensor>(Tensor::Zeros(DType::kUInt8, Shape({kLarge})));
  CopyOnWrite copies(live, kPageBytes);
  for (int round = 0; round < kRounds; ++round) {
    const auto snapshot = copies.TakeSnapshot();
    const std::vector<uint8_t> expected(kLarge, static_cast<uint8_t>(round));
    std::vector<std::thread> threads;
    // Each writes every other three bytes, so that both write to every page.
    for (size_t writer = 0; writer < 2; ++writer) {
      threads.emplace_back([&, writer] {
        for (size_t at = 3 * writer; at < kLarge; at += 6) {
          Write(&copies, live.get(), {at, std::min(at + 3, kLarge)},
                static_cast<uint8_t>(round + 1));
        }
      });
    }
    std::vector<uint8_t> got;
    threads.emplace_back([&] { got = ReadAll(*snapshot); });
    for (std::thread& thread : threads) thread.join();
    REQUIRE(got == expected);
    REQUIRE(ReadAll(*snapshot) == expected);
  }
}

}  // namespace
}  // namespace lockstep::ps
