#include "common/config/shard_names.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("a shard is named after its ps and where that is") {
  CHECK(ShardNames({"a:1", "[::1]:2"}) == std::vector<std::string>{"ps 0 (a:1)", "ps 1 ([::1]:2)"});
  CHECK(ShardNames({}).empty());
}

}  // namespace
}  // namespace lockstep
