#include "worker/service/convert.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TEST_CASE("a heartbeat names the view that failed, or none") {
  HeartbeatRequest request;
  SetFailedView({.term = 3, .epoch = 5, .view = 7}, &request);
  CHECK(request.failed_term() == 3);
  CHECK(request.failed_epoch() == 5);
  CHECK(request.failed_view() == 7);
  SetFailedView(GroupViewId(), &request);
  CHECK(request.failed_view() == 0);
}

}  // namespace
}  // namespace lockstep::worker
