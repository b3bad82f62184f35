#include "worker/step/example_log.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::worker {
namespace {

Batch BatchOfNumbers(std::vector<int64_t> numbers) {
  Batch batch;
  batch.examples = std::move(numbers);
  return batch;
}

TEST_CASE("each batch of a step has a line, which is in the file at once") {
  const test::TemporaryFolder folder;
  folder.Write("log.csv", "older");
  const auto log = ExampleLog::Create(folder.Path("log.csv"));
  REQUIRE(log.ok());
  CHECK(folder.Read("log.csv") == "step,tower,examples\n");
  const Batch two[] = {BatchOfNumbers({5, 0, 17}), BatchOfNumbers({2})};
  (*log)->Record(GlobalStep(3), 0, two);
  (*log)->Record(GlobalStep(4), 2, std::span(two).subspan(1));
  CHECK(folder.Read("log.csv") == "step,tower,examples\n3,0,5 0 17\n3,1,2\n4,2,2\n");
  CHECK((*log)->status().ok());
}

TEST_CASE("rows that towers have loaded are recorded as any others") {
  const test::TemporaryFolder folder;
  const auto log = ExampleLog::Create(folder.Path("log.csv"));
  const std::vector<int64_t> numbers = {8, 9};
  std::vector<Batch> loaded(1);
  loaded[0].loaded.emplace().examples = numbers;
  (*log)->Record(GlobalStep(0), 0, loaded);
  CHECK(folder.Read("log.csv") == "step,tower,examples\n0,0,8 9\n");
}

TEST_CASE("a file that cannot be made, or written to, is an error that names it") {
  const absl::Status made = ExampleLog::Create("/no/such/folder/log.csv").status();
  CHECK(absl::StrContains(made.message(), "/no/such/folder/log.csv"));
  const absl::Status full = ExampleLog::Create("/dev/full").status();
  CHECK(absl::StrContains(full.message(), "/dev/full"));
}

}  // namespace
}  // namespace lockstep::worker
