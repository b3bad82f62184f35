#include "worker/data/transformed_source.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

namespace lockstep::worker {
namespace {

std::unique_ptr<TransformedSource> Endless() {
  using Kind = TransformStep::Kind;
  return *TransformedSource::Create({{.kind = Kind::kRepeat}, {.kind = Kind::kBatch, .size = 4}},
                                    /*num_examples=*/61, {.job = 1, .replica = 2}, /*towers=*/1);
}

TEST_CASE("the way to a late step of transformed data can be cancelled") {
  const auto source = Endless();
  std::atomic<bool> cancelled = false;
  std::vector<Element> towers(1);
  bool is_read = true;
  std::thread reader([&] { is_read = source->Read(int64_t{1} << 50, cancelled, &towers); });
  cancelled = true;
  reader.join();
  CHECK_FALSE(is_read);
}

TEST_CASE("a source that was cancelled on its way reads each step as if it had not been") {
  const auto source = Endless();
  std::vector<Element> towers(1), wanted(1);
  std::atomic<bool> cancelled = true;
  CHECK_FALSE(source->Read(30, cancelled, &towers));
  cancelled = false;
  for (const int64_t step : {20, 30, 7}) {
    REQUIRE(source->Read(step, cancelled, &towers));
    REQUIRE(Endless()->Read(step, cancelled, &wanted));
    REQUIRE(towers[0].size() == 4);
    for (size_t i = 0; i < 4; ++i) CHECK(towers[0][i].number == wanted[0][i].number);
  }
}

}  // namespace
}  // namespace lockstep::worker
