#include "ps/copy/state_plan.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

using Messages = StatePlan::Messages;

// Variables of so many bytes, each with a value and as many slots.
std::vector<StateTensor> TensorsOf(const std::vector<uint64_t>& sizes, size_t num_slots) {
  std::vector<StateTensor> tensors;
  for (size_t variable = 0; variable < sizes.size(); ++variable) {
    for (size_t i = 0; i <= num_slots; ++i) {
      tensors.push_back({.variable = variable, .num_bytes = sizes[variable]});
    }
  }
  return tensors;
}

TEST_CASE("a plan sends every byte of every tensor once, in order") {
  StatePlan plan(TensorsOf({0, 20, 0, 12, 0}, 0));
  CHECK(plan.num_bytes() == 32);
  CHECK(plan.Next(8, 100) == Messages{{{1, 0, 8}}});
  CHECK_FALSE(plan.is_done());
  CHECK(plan.Next(23, 100) == Messages{{{1, 8, 12}, {3, 0, 8}}});
  CHECK(plan.Next(100, 100) == Messages{{{3, 8, 4}}});
  CHECK(plan.is_done());
  CHECK(plan.Next(100, 100).empty());
}

TEST_CASE("elements come with their value and all their slots in one part") {
  StatePlan plan(TensorsOf({40, 8}, 2));
  CHECK(plan.num_bytes() == 144);
  CHECK(plan.Next(50, 100) == Messages{{{0, 0, 16}, {1, 0, 16}, {2, 0, 16}}});
  // Less than an element is as much as one.
  CHECK(plan.Next(1, 100) == Messages{{{0, 16, 8}, {1, 16, 8}, {2, 16, 8}}});
  CHECK(plan.Next(70, 100) == Messages{{{0, 24, 16}, {1, 24, 16}, {2, 24, 16}}});
  CHECK(plan.Next(70, 100) == Messages{{{3, 0, 8}, {4, 0, 8}, {5, 0, 8}}});
  CHECK(plan.is_done());
}

TEST_CASE("a part is cut into messages, anywhere") {
  StatePlan plan(TensorsOf({16}, 1));
  const Messages messages = {{{0, 0, 10}}, {{0, 10, 6}, {1, 0, 4}}, {{1, 4, 10}}, {{1, 14, 2}}};
  CHECK(plan.Next(100, 10) == messages);
}

TEST_CASE("without bytes there is nothing to send") {
  CHECK(StatePlan({}).is_done());
  CHECK(StatePlan(TensorsOf({0, 0}, 1)).is_done());
}

}  // namespace
}  // namespace lockstep::ps
