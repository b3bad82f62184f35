#include "worker/tower/row_lists.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/support/test_device.h"

namespace lockstep::worker {
namespace {

TEST_CASE("lists of rows have a place for as many as were planned, and are refused beyond") {
  const auto device = test::MakeTestDevice(/*threads=*/1);
  const auto stream = *device->CreateStream({});
  const auto done = *device->CreateEvent();
  RowLists lists = *RowLists::Create(std::vector<int64_t>{0, 3, 2}, device.get());
  CHECK(lists.on_device().empty());
  const std::vector<int64_t> three = {0, 4, 9};
  const std::vector<int64_t> one = {7};
  REQUIRE(lists.Bring(std::vector<std::span<const int64_t>>{{}, three, one}, stream.get()).ok());
  REQUIRE(lists.on_device().size() == 3);
  const TableRows before = lists.on_device()[1];
  std::vector<int64_t> read(4);
  stream->CopyToHost(read.data(), before.count, sizeof(int64_t));
  stream->CopyToHost(&read[1], before.rows, 3 * sizeof(int64_t));
  stream->Record(done.get());
  REQUIRE(done->Wait().ok());
  CHECK(read == std::vector<int64_t>{3, 0, 4, 9});

  REQUIRE(lists.Bring(std::vector<std::span<const int64_t>>{{}, one, one}, stream.get()).ok());
  CHECK(lists.on_device()[1].count == before.count);  // as a graph needs it
  stream->Record(done.get());
  REQUIRE(done->Wait().ok());
  const absl::Status refused =
      lists.Bring(std::vector<std::span<const int64_t>>{{}, one, three}, stream.get());
  CHECK(absl::IsInternal(refused));
  CHECK_THAT(
      std::string(refused.message()),
      Catch::StartsWith("rows of variable 2 in a step: expected at most 2, got 3. Remedy: "));
  REQUIRE(lists.Bring({}, stream.get()).ok());
  CHECK(lists.on_device().empty());
}

}  // namespace
}  // namespace lockstep::worker
