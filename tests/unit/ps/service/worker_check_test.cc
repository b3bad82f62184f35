#include "ps/service/worker_check.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/limits.h"
#include "proto/ps.pb.h"
#include "tests/conformance/small_job.h"
#include "tests/unit/ps/service/running_ps.h"

namespace lockstep::ps {
namespace {

constexpr char kPiece = '\x22';   // the tag of PushRequest.pieces
constexpr char kMean = '\x4a';    // of PushRequest.mean_of
constexpr char kPulled = '\x1a';  // of PullRequest.pieces

std::string Empty(char tag, size_t entries) {
  std::string list;
  for (size_t i = 0; i < entries; ++i) list.append({tag, '\0'});
  return list;
}

// A push of worker `worker` followed by `fields`.
std::string MessageOf(uint32_t worker, const std::string& fields) {
  PushRequest push;
  *push.mutable_worker() = PushOf(worker, 0, 0, 3, 0, 3).worker();
  return push.SerializeAsString() + fields;
}

// The field `next` with a pull of so many empty pieces.
std::string NextOf(size_t pieces) {
  PullRequest pull;
  for (size_t i = 0; i < pieces; ++i) pull.add_pieces();
  PushRequest push;
  *push.mutable_next()->mutable_pull() = pull;
  return push.SerializeAsString();
}

TEST_CASE("A message of more pieces than a message may have is refused before it is parsed") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto check = [&ps](const std::string& message) {
    return CheckUnparsed(message, PushRequest::kPiecesFieldNumber, ps.shard());
  };
  CHECK(check(MessageOf(0, Empty(kPiece, limits::kMaxPieces))).ok());
  const absl::Status refused = check(MessageOf(0, Empty(kPiece, limits::kMaxPieces + 1)));
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "`pieces` has 262145 entries, at most 262144"));
  // Who sends it is looked at first.
  const absl::Status stranger = check(MessageOf(7, Empty(kPiece, limits::kMaxPieces + 1)));
  CHECK(absl::StrContains(stranger.message(), "worker 7 is not a member"));
}

TEST_CASE("Each list of a push is counted, wherever it is and in however many parts it comes") {
  RunningPs ps;
  ps.CreateVariables({3});
  const auto check = [&ps](const std::string& fields) {
    return CheckUnparsedPush(MessageOf(0, fields), ps.shard());
  };
  constexpr size_t kMost = limits::kMaxPieces;
  CHECK(check(Empty(kPiece, kMost) + Empty(kMean, kMost) + NextOf(kMost)).ok());
  CHECK(check(NextOf(1) + Empty(kPiece, 7) + NextOf(kMost - 1)).ok());
  const auto refused = [&](const std::string& fields, absl::string_view list) {
    const absl::Status status = check(fields);
    CAPTURE(status.message());
    return absl::IsInvalidArgument(status) &&
           absl::StrContains(status.message(),
                             absl::StrCat("`", list, "` has 262145 entries, at most 262144"));
  };
  CHECK(refused(Empty(kPiece, kMost + 1), "pieces"));
  CHECK(refused(Empty(kMean, kMost + 1), "mean_of"));
  CHECK(refused(Empty(kMean, kMost) + NextOf(1) + Empty(kMean, 1), "mean_of"));
  CHECK(refused(NextOf(kMost + 1), "next.pull.pieces"));
  CHECK(refused(NextOf(1) + Empty(kMean, 3) + NextOf(kMost), "next.pull.pieces"));
  // Two pulls in one `next`.
  const std::string half = absl::StrCat("\x12\x80\x80\x10", Empty(kPulled, kMost / 2));
  const std::string parts = absl::StrCat(half, half, "\x12\x02", Empty(kPulled, 1));
  PushRequest push;
  REQUIRE(push.mutable_next()->ParseFromString(parts));
  REQUIRE(push.next().pull().pieces_size() == static_cast<int>(kMost) + 1);
  std::string size;
  for (size_t rest = parts.size(); rest > 0; rest >>= 7) {
    size.push_back(static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0)));
  }
  CHECK(refused(absl::StrCat("\x3a", size, parts), "next.pull.pieces"));
}

TEST_CASE("A message whose pieces go on beyond the field around them is refused") {
  RunningPs ps;
  ps.CreateVariables({3});
  // `next` of 4 bytes, whose `pull` claims all that follows: the parser would read that first.
  const std::string claims("\x3a\x04\x12\x80\x80\x20", 6);
  const absl::Status status =
      CheckUnparsedPush(MessageOf(0, claims + Empty(kPulled, limits::kMaxPieces)), ps.shard());
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "is malformed"));
}

}  // namespace
}  // namespace lockstep::ps
