#include "chief/membership/group_former.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

LiveMember Member(uint32_t worker, uint64_t incarnation) {
  return {WorkerIndex(worker), Incarnation(incarnation)};
}

TEST_CASE("a group is formed when enough members are there, and again when one is another") {
  GroupFormer group(2);
  CHECK_FALSE(group.Update({}));
  CHECK_FALSE(group.Update({Member(1, 11)}));
  CHECK(group.view() == 0);
  CHECK(group.Update({Member(0, 10), Member(1, 11)}));
  CHECK(group.view() == 1);
  CHECK_FALSE(group.Update({Member(0, 10), Member(1, 11)}));
  // A lost member changes nothing until its successor is there.
  CHECK_FALSE(group.Update({Member(1, 11)}));
  CHECK(group.members().size() == 2);
  CHECK(group.Update({Member(0, 20), Member(1, 11)}));
  CHECK(group.view() == 2);
  CHECK(group.members()[0] == Member(0, 20));
}

}  // namespace
}  // namespace lockstep::chief
