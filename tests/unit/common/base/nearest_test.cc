#include "common/base/nearest.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("The distance of two names counts their edits") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("", "abc") == 3);
  CHECK(EditDistance("kitten", "sitting") == 3);
  CHECK(EditDistance("wroker", "worker") == 1);  // neighbours swapped
  CHECK(EditDistance("Dense", "dense") == 0);
  CHECK(EditDistance("abc", "cba") == EditDistance("cba", "abc"));
}

TEST_CASE("The nearest name comes first and ties keep their order") {
  const std::vector<std::string> known = {"towers", "max_steps", "data", "seed"};
  CHECK(NearestFirst("max_step", known).front() == "max_steps");
  CHECK(NearestFirst("", known) == std::vector<std::string>{"data", "seed", "towers", "max_steps"});
}

TEST_CASE("A name that is near to nothing has no nearest") {
  CHECK(Nearest("conv2", {"conv1", "dense"}) == "conv1");
  CHECK(Nearest("banana", {"conv1", "dense"}).empty());
  CHECK(Nearest("anything", {}).empty());
}

TEST_CASE("Very long names end in reasonable time") {
  CHECK(Nearest(std::string(1 << 20, 'x'), {"conv1", std::string(1 << 20, 'x')}).size() == 1 << 20);
}

}  // namespace
}  // namespace lockstep
