#include "worker/service/last_reply.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/service/fake_chief.h"

namespace lockstep::worker {
namespace {

TEST_CASE("a reply of a run that another run has followed comes too late") {
  LastReply last;
  CHECK(last.Set(ReplyIdOf(5, 4)));
  CHECK(last.Set(ReplyIdOf(6, 1)));
  CHECK_FALSE(last.Set(ReplyIdOf(5, 5)));
  CHECK(last.Set(ReplyIdOf(6, 2)));
  CHECK_FALSE(last.Set(ReplyIdOf(6, 1)));
  HeartbeatRequest request;
  last.NameIn(&request);
  CHECK(request.last_reply().run() == 6);
  CHECK(request.last_reply().number() == 2);
}

}  // namespace
}  // namespace lockstep::worker
