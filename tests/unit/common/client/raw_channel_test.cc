#include <catch2/catch.hpp>

#include "common/client/chief_client.h"
#include "common/rpc/event_queue.h"

namespace lockstep {
namespace {

// Nobody listens there: each call ends on the queue's thread while the client goes.
void EndWithACallInFlight(rpc::EventQueue* queue) {
  for (int round = 0; round < 50; ++round) {
    int ended = 0;
    {
      const auto client =
          MakeChiefClient({.address = "127.0.0.1:1", .name = "nobody", .queue = queue});
      client->ReportError(ReportErrorRequest(), [&](const auto& reply) {
        CHECK_FALSE(reply.ok());
        ++ended;
      });
    }
    REQUIRE(ended == 1);
  }
}

TEST_CASE("A client that goes ends its calls, on a queue of its own") {
  EndWithACallInFlight(nullptr);
}

TEST_CASE("A client that goes ends its calls, on a queue that others use") {
  rpc::EventQueue queue;
  EndWithACallInFlight(&queue);
}

}  // namespace
}  // namespace lockstep
