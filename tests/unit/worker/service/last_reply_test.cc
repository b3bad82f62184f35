#include "worker/service/last_reply.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

ReplyId Id(uint64_t run, uint64_t number) {
  ReplyId id;
  id.set_run(run);
  id.set_number(number);
  return id;
}

TEST_CASE("a reply of a run that another run has followed comes too late") {
  LastReply last;
  CHECK(last.Set(Id(5, 4)));
  CHECK(last.Set(Id(6, 1)));
  CHECK_FALSE(last.Set(Id(5, 5)));
  CHECK(last.Set(Id(6, 2)));
  CHECK_FALSE(last.Set(Id(6, 1)));
  HeartbeatRequest request;
  last.NameIn(&request);
  CHECK(request.last_reply().run() == 6);
  CHECK(request.last_reply().number() == 2);
}

}  // namespace
}  // namespace lockstep::worker
