#include "ps/service/worker_check.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "proto/ps.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

// A push of worker `worker` with that many empty pieces, field 4.
std::string MessageOf(uint32_t worker, size_t pieces) {
  PushRequest push;
  *push.mutable_worker() = PushOf(worker, 0, 0, 3, 0, 3).worker();
  std::string message = push.SerializeAsString();
  for (size_t i = 0; i < pieces; ++i) message.append("\x22\0", 2);
  return message;
}

TEST_CASE("A message of more pieces than a message may have is refused before it is parsed") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto check = [&ps](const std::string& message) {
    return CheckUnparsed(message, PushRequest::kPiecesFieldNumber, ps.shard());
  };
  CHECK(check(MessageOf(0, limits::kMaxPieces)).ok());
  const absl::Status refused = check(MessageOf(0, limits::kMaxPieces + 1));
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "`pieces` has 262145 entries, at most 262144"));
  // Who sends it is looked at first.
  const absl::Status stranger = check(MessageOf(7, limits::kMaxPieces + 1));
  CHECK(absl::StrContains(stranger.message(), "worker 7 is not a member"));
}

}  // namespace
}  // namespace lockstep::ps
