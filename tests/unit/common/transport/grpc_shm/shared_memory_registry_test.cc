#include "common/transport/grpc_shm/shared_memory_registry.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/common/transport/grpc_shm/exchange.h"

namespace lockstep {
namespace {

using test::Attach;
using test::Identity;

google::protobuf::RepeatedPtrField<Member> Members(uint32_t worker, uint64_t incarnation) {
  google::protobuf::RepeatedPtrField<Member> members;
  Member* const member = members.Add();
  member->set_worker(worker);
  member->set_incarnation(incarnation);
  return members;
}

TEST_CASE("Memory belongs to one incarnation in one epoch, for as long as it is a member") {
  SharedMemoryRegistry registry;
  REQUIRE(registry.MakeValues(100).has_value());
  const WorkerIdentity first = Identity(0, 100), successor = Identity(0, 200);
  CHECK(absl::IsNotFound(registry.GradientsOf(first).status()));
  CHECK(registry.ValuesSeenBy(first) == nullptr);
  Attach(&registry, first);
  CHECK(registry.GradientsOf(first).ok());
  CHECK(registry.ValuesSeenBy(first) != nullptr);
  CHECK(absl::IsNotFound(registry.GradientsOf(successor).status()));
  WorkerIdentity later = first;
  later.set_epoch(2);
  CHECK(registry.ValuesSeenBy(later) == nullptr);
  const auto held = registry.GradientsOf(first);
  Attach(&registry, successor);
  CHECK(absl::IsNotFound(registry.GradientsOf(first).status()));
  CHECK((*held)->bytes()[0] == std::byte{0});  // still there
  registry.KeepOnly(Members(0, 200));
  CHECK(registry.ValuesSeenBy(successor) != nullptr);
  registry.KeepOnly(Members(1, 200));
  CHECK(registry.ValuesSeenBy(successor) == nullptr);
}

TEST_CASE("Memory is offered on the same host alone, and where there are values") {
  SharedMemoryRegistry registry;
  CHECK_FALSE(registry.Offer(Identity(0, 100), *shm::BootId()).reason().empty());
  REQUIRE(registry.MakeValues(100).has_value());
  const AttachMemoryReply elsewhere = registry.Offer(Identity(0, 100), "another machine");
  CHECK(elsewhere.socket().empty());
  CHECK(absl::StrContains(elsewhere.reason(), "host"));
  CHECK_FALSE(registry.MakeValues(uint64_t{1} << 50).has_value());
}

TEST_CASE("Values made anew are not those that a worker has") {
  SharedMemoryRegistry registry;
  REQUIRE(registry.MakeValues(100).has_value());
  const AttachMemoryReply offer = registry.Offer(Identity(0, 100), *shm::BootId());
  Attach(&registry, Identity(1, 101));
  REQUIRE(registry.MakeValues(200).has_value());
  CHECK(registry.ValuesSeenBy(Identity(1, 101)) == nullptr);
  CHECK_FALSE(shm::ShareMemory(offer.socket(), offer.secret(), nullptr, absl::Seconds(30)).ok());
}

}  // namespace
}  // namespace lockstep
