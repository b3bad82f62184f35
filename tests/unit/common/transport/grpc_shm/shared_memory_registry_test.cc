#include "common/transport/grpc_shm/shared_memory_registry.h"

#include <catch2/catch.hpp>
#include <thread>
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
  const auto values = registry.MakeValues(100);
  REQUIRE(values.has_value());
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
  const auto values = registry.MakeValues(100);
  REQUIRE(values.has_value());
  const AttachMemoryReply elsewhere = registry.Offer(Identity(0, 100), "another machine");
  CHECK(elsewhere.socket().empty());
  CHECK(absl::StrContains(elsewhere.reason(), "host"));
  CHECK_FALSE(registry.MakeValues(uint64_t{1} << 50).has_value());
}

TEST_CASE("Values made anew are not those that a worker has") {
  SharedMemoryRegistry registry;
  const auto values = registry.MakeValues(100);
  const AttachMemoryReply offer = registry.Offer(Identity(0, 100), *shm::BootId());
  Attach(&registry, Identity(1, 101));
  const auto anew = registry.MakeValues(200);
  REQUIRE(anew.has_value());
  CHECK(registry.ValuesSeenBy(Identity(1, 101)) == nullptr);
  CHECK_FALSE(shm::ShareMemory(offer.socket(), offer.secret(), nullptr, absl::Seconds(30)).ok());
}

TEST_CASE("Values that the shard has let go are not kept for those who have not seen them go") {
  SharedMemoryRegistry registry;
  std::optional<LentMemory> values = registry.MakeValues(100);
  Attach(&registry, Identity(0, 100));
  const std::weak_ptr<const void> owner = values->owner;
  values.reset();
  // The thread that has just handed them over may hold them a moment longer.
  while (!owner.expired()) std::this_thread::yield();
  CHECK(registry.ValuesSeenBy(Identity(0, 100)) == nullptr);
  CHECK_FALSE(registry.Offer(Identity(1, 101), *shm::BootId()).reason().empty());
}

}  // namespace
}  // namespace lockstep
