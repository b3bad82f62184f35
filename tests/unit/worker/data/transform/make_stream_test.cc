#include "worker/data/transform/make_stream.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/worker/data/transform/plain_transform.h"

namespace lockstep::worker {
namespace {

using test::Numbers;
using test::PlainTransform;
using Kind = TransformStep::Kind;

constexpr StreamSeeds kSeeds{.job = 5, .replica = 6};

TransformStep Shard(int64_t size, int64_t index) { return {Kind::kShard, size, index}; }
TransformStep Repeat(int64_t count) { return {Kind::kRepeat, count}; }
TransformStep Shuffle(int64_t buffer) { return {Kind::kShuffle, buffer}; }
TransformStep Shift() { return {Kind::kShift}; }
TransformStep BatchOf(int64_t size, bool drop_remainder) {
  return {Kind::kBatch, size, 0, drop_remainder};
}

std::vector<Element> ReadAll(ElementStream& stream, size_t most) {
  std::vector<Element> all;
  Element element;
  while (all.size() < most && stream.Next(&element)) all.push_back(element);
  return all;
}

Numbers NumbersOf(const Element& element) {
  Numbers numbers;
  for (const DrawnExample& example : element) numbers.push_back(example.number);
  return numbers;
}

std::vector<Numbers> Read(const std::vector<TransformStep>& steps, int64_t examples, size_t most,
                          const StreamSeeds& seeds = kSeeds) {
  std::vector<Numbers> all;
  for (const Element& e : ReadAll(*MakeStream(steps, examples, seeds), most)) {
    all.push_back(NumbersOf(e));
  }
  return all;
}

Numbers Flat(const std::vector<Numbers>& elements) {
  Numbers flat;
  for (const Numbers& e : elements) flat.insert(flat.end(), e.begin(), e.end());
  return flat;
}

std::string Text(const std::vector<Numbers>& batches) {
  return absl::StrJoin(batches, "|", [](std::string* out, const Numbers& batch) {
    absl::StrAppend(out, absl::StrJoin(batch, " "));
  });
}

TEST_CASE("Streams without a shuffle give what tf.data gave") {
  constexpr size_t kMostBatches = 24;
  std::ifstream file("tests/unit/worker/data/transform/tf_data.txt");
  std::string line;
  int scripts = 0;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    CAPTURE(line);
    const size_t arrow = line.find("=>");
    REQUIRE(arrow != std::string::npos);
    std::istringstream words(line.substr(0, arrow));
    int64_t examples = 0;
    words >> examples;
    std::vector<TransformStep> steps;
    std::string kind;
    int64_t size = 0;
    int64_t other = 0;
    while (words >> kind >> size >> other) {
      steps.push_back(kind == "shard"    ? Shard(size, other)
                      : kind == "repeat" ? Repeat(size)
                                         : BatchOf(size, other != 0));
    }
    const auto batches = Read(steps, examples, kMostBatches);
    CHECK(Text(batches) == line.substr(std::min(arrow + 3, line.size())));
    CHECK(batches == PlainTransform(steps, examples, kMostBatches));
    const auto counted = CountGroups(steps, examples, 1);
    if (counted.ok()) {
      CHECK(batches.size() == std::min<uint64_t>(kMostBatches, static_cast<uint64_t>(*counted)));
    } else if (counted.status().message().find("whole batches") == std::string::npos) {
      CHECK(batches.empty());
    }
    ++scripts;
  }
  CHECK(scripts == 96);
}

TEST_CASE("A shuffle gives every element once and none earlier than its buffer allows") {
  for (int64_t examples : {0, 1, 2, 7, 64, 257}) {
    for (int64_t buffer : {1, 2, 7, 64, 1000}) {
      CAPTURE(examples, buffer);
      const Numbers order = Flat(Read({Shuffle(buffer)}, examples, 10000));
      Numbers sorted = order;
      std::ranges::sort(sorted);
      Numbers expected(examples);
      std::iota(expected.begin(), expected.end(), 0);
      CHECK(sorted == expected);
      for (int64_t place = 0; place < examples; ++place) CHECK(order[place] < place + buffer);
      if (buffer == 1) CHECK(order == expected);
    }
  }
}

TEST_CASE("A buffer as large as the data makes all orders about equally often") {
  std::map<Numbers, int> seen;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    ++seen[Flat(Read({Shuffle(3)}, 3, 3, {.job = 0, .replica = seed}))];
  }
  CHECK(seen.size() == 6);
  for (const auto& [order, count] : seen) {
    CAPTURE(order);
    CHECK(count > 850);
    CHECK(count < 1150);
  }
}

TEST_CASE("Repeat behind a shuffle has another order in each iteration, and before it mixes them") {
  const Numbers behind = Flat(Read({Shuffle(20), Repeat(3)}, 20, 100));
  REQUIRE(behind.size() == 60);
  std::set<Numbers> orders;
  for (int i = 0; i < 3; ++i) {
    Numbers one(behind.begin() + 20 * i, behind.begin() + 20 * (i + 1));
    orders.insert(one);
    CHECK(std::set<int64_t>(one.begin(), one.end()).size() == 20);
  }
  CHECK(orders.size() == 3);
  const Numbers before = Flat(Read({Repeat(3), Shuffle(20)}, 20, 100));
  REQUIRE(before.size() == 60);
  CHECK(std::set<int64_t>(before.begin(), before.begin() + 20).size() < 20);
  for (int64_t i = 0; i < 20; ++i) CHECK(std::ranges::count(before, i) == 3);
}

TEST_CASE("Batches that are shuffled stay whole") {
  auto batches = Read({BatchOf(4, true), Shuffle(5)}, 22, 100);
  CHECK(batches != PlainTransform({BatchOf(4, true)}, 22, 100));
  std::ranges::sort(batches);
  CHECK(batches == PlainTransform({BatchOf(4, true)}, 22, 100));
}

TEST_CASE("Shards of one shuffle have no example in common, and together all") {
  std::multiset<int64_t> all;
  for (int64_t worker = 0; worker < 3; ++worker) {
    const StreamSeeds seeds{.job = 5, .replica = static_cast<uint64_t>(100 + worker)};
    for (const int64_t number : Flat(Read({Shuffle(50), Shard(3, worker)}, 50, 100, seeds))) {
      all.insert(number);
    }
  }
  CHECK(all.size() == 50);
  CHECK(std::set<int64_t>(all.begin(), all.end()).size() == 50);
  const auto own = [](uint64_t replica) {
    return Read({Shard(1, 0), Shuffle(50)}, 50, 100, {.job = 5, .replica = replica});
  };
  CHECK(own(1) == own(1));
  CHECK(own(1) != own(2));
}

TEST_CASE("Each pass of an example has a random shift of its own") {
  const auto stream = MakeStream(std::vector{Shift(), Repeat(2), BatchOf(3, false)}, 6, kSeeds);
  std::vector<int64_t> draws;
  for (const Element& batch : ReadAll(*stream, 100)) {
    for (const DrawnExample& example : batch) draws.push_back(example.draw);
  }
  std::vector<int64_t> expected(12);
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(draws == expected);
}

TEST_CASE("What can never give a whole group is refused, and names the remedy") {
  const auto error = [](std::vector<TransformStep> steps, int64_t examples, int64_t towers) {
    return std::string(CountGroups(steps, examples, towers).status().message());
  };
  CHECK_THAT(error({BatchOf(4, false)}, 22, 1),
             Catch::Contains("the last one has 2") && Catch::Contains("drop_remainder: true"));
  CHECK_THAT(error({Repeat(2)}, 7, 1), Catch::Contains("expected batch once"));
  CHECK_THAT(error({BatchOf(4, true)}, 7, 2),
             Catch::Contains("at least 2 batches") && Catch::Contains("got 1 of 7 examples"));
  CHECK_THAT(error({BatchOf(8, true), Repeat(0)}, 7, 1), Catch::Contains("got 0 of 7"));
  CHECK(*CountGroups(std::vector{Repeat(0), BatchOf(8, false)}, 7, 4) == kEndless);
  CHECK(*CountGroups(std::vector{Repeat(kEndless / 2), BatchOf(1, false)}, 7, 4) == kEndless);
  CHECK(*CountGroups(std::vector{BatchOf(3, true), Repeat(5)}, 10, 4) == 3);
}

}  // namespace
}  // namespace lockstep::worker
