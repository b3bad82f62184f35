#include <catch2/catch.hpp>

#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief::worker_calls_test {
namespace {

TEST_CASE("workers are told where the shards are, at once when that changes") {
  Fixture f;
  f.places.emplace_back().set_address("a:1");
  f.places[0].set_other_address("b:7");
  f.Begin();
  const auto registered = f.Register(0, 10);
  REQUIRE(registered->has_value());
  REQUIRE((*registered)->value().shards_size() == 1);
  CHECK((*registered)->value().shards(0).address() == "a:1");
  CHECK((*registered)->value().shards(0).other_address() == "b:7");
  // Of a chief that the worker has not heard of before, perhaps.
  auto first = f.Beat(0, 10);
  REQUIRE(first->has_value());
  CHECK((*first)->value().shards(0).address() == "a:1");

  const auto parked = f.Beat(0, 10);
  CHECK_FALSE(parked->has_value());
  f.places[0].set_address("b:7");
  f.places[0].clear_other_address();
  f.Pass(absl::Milliseconds(100));
  REQUIRE(parked->has_value());
  CHECK((*parked)->value().shards(0).address() == "b:7");
  CHECK((*parked)->value().shards(0).other_address().empty());
  CHECK_FALSE(f.Beat(0, 10)->has_value());
}

}  // namespace
}  // namespace lockstep::chief::worker_calls_test
