#include "ps/shard/snapshot_store.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

TEST_CASE("a snapshot is found by its version until it is released") {
  SnapshotStore store;
  const auto snapshot = std::make_shared<Snapshot>();
  store.Keep(GlobalStep(3), snapshot);
  CHECK(store.Find(GlobalStep(3)) == snapshot);
  CHECK(store.Find(GlobalStep(4)) == nullptr);
  CHECK(store.Release(GlobalStep(3)) == snapshot);
  CHECK(store.Find(GlobalStep(3)) == nullptr);
  CHECK(store.Release(GlobalStep(3)) == nullptr);
}

}  // namespace
}  // namespace lockstep::ps
