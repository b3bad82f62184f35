// A worker that exchanges memory with a registry.
#pragma once

#include <catch2/catch.hpp>
#include <memory>

#include "common/shm/fd_passing_client.h"
#include "common/shm/host.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"

namespace lockstep::test {

inline WorkerIdentity Identity(uint32_t worker, uint64_t incarnation) {
  WorkerIdentity identity;
  identity.set_epoch(1);
  identity.set_worker(worker);
  identity.set_incarnation(incarnation);
  return identity;
}

// The worker's memory, of 4096 bytes.
inline std::shared_ptr<shm::Segment> Attach(SharedMemoryRegistry* registry,
                                            const WorkerIdentity& worker) {
  const AttachMemoryReply offer = registry->Offer(worker, *shm::BootId());
  REQUIRE(offer.reason().empty());
  auto mine = shm::Segment::Create("test", 4096);
  REQUIRE(mine.ok());
  const auto values =
      shm::ShareMemory(offer.socket(), offer.secret(), mine->get(), absl::Seconds(30));
  REQUIRE(values.ok());
  CHECK(*values != nullptr);
  return *mine;
}

}  // namespace lockstep::test
