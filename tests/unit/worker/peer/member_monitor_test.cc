#include "worker/peer/member_monitor.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

TEST_CASE("what a member may take later is repeated, a call that was cancelled here is not") {
  for (const absl::Status& status :
       {absl::UnavailableError("it has cancelled the call"), absl::DeadlineExceededError(""),
        absl::NotFoundError("no memory"), absl::FailedPreconditionError("not in the view yet"),
        absl::ResourceExhaustedError(""), absl::UnknownError(""), absl::DataLossError("")}) {
    CAPTURE(status.ToString());
    CHECK(MayRepeat(status));
  }
  for (const absl::Status& status : {absl::CancelledError("calls to worker 1 were cancelled"),
                                     absl::AbortedError(""), absl::InvalidArgumentError("")}) {
    CAPTURE(status.ToString());
    CHECK_FALSE(MayRepeat(status));
  }
}

}  // namespace
}  // namespace lockstep::worker
