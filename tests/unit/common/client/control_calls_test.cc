#include "common/client/control_calls.h"

#include <grpcpp/channel.h>

#include <catch2/catch.hpp>

#include "common/rpc/channel.h"
#include "proto/chief.grpc.pb.h"

namespace lockstep {
namespace {

using Async = Chief::StubInterface::async_interface;

TEST_CASE("a client that is gone has left no call behind that holds its channel") {
  for (int round = 0; round < 50; ++round) {
    // Nobody listens there: each call ends on gRPC's thread while the client goes.
    const std::shared_ptr<grpc::Channel> channel = rpc::MakeChannel("127.0.0.1:1");
    {
      const std::unique_ptr<Chief::Stub> stub = Chief::NewStub(channel);
      int ended = 0;
      {
        ControlCalls calls({.address = "127.0.0.1:1", .name = "nobody"});
        calls.Start(stub->async(), &Async::ReportError, "ReportError", ReportErrorRequest(),
                    absl::Seconds(10), Done<ReportErrorReply>([&](const auto& reply) {
                      CHECK_FALSE(reply.ok());
                      ++ended;
                    }));
      }
      REQUIRE(ended == 1);
    }
    REQUIRE(channel.use_count() == 1);
  }
}

}  // namespace
}  // namespace lockstep
