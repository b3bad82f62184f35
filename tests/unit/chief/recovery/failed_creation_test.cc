// What a shard answers that cannot make its variables.
#include <catch2/catch.hpp>
#include <cerrno>

#include "common/base/exit_code.h"
#include "common/fs/fs_error.h"
#include "tests/unit/chief/recovery/initializer_fixture.h"

namespace lockstep::chief {
namespace {

using test::Options;
using test::Seen;
using Fixture = test::InitializerFixture;

TEST_CASE("what a shard cannot make now it is asked for again where the job has trained") {
  const absl::Status failure = GENERATE(
      ReadError("ckpt-3/shard-0", "read", EIO), ReadError("ckpt-3/shard-0", "read", ESTALE),
      WithExitCode(absl::ResourceExhaustedError("no memory"), ExitCode::kBadConfiguration));
  const bool retries = GENERATE(false, true);
  RecoverySpec spec = Options();
  spec.retries_creation = retries;
  Fixture f(spec);
  f.AnswerUntilCreation();
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(failure));
  CHECK(f.result.has_value() != retries);
  if (!retries) {
    CHECK(f.result->status().message() == failure.message());
    CHECK(ExitCodeFor(f.result->status()) == ExitCodeFor(failure));
    return;
  }
  CHECK(f.initializer.creation_failure() == failure);
  CHECK_THAT(f.initializer.DescribeWaiting(), Catch::Contains(std::string(failure.message())));
  f.Answer(&f.b.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  f.Pass(absl::Seconds(2));
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(CreateVariablesReply()));
  REQUIRE(f.result.has_value());
  CHECK(f.result->ok());
}

TEST_CASE("a checkpoint that is damaged is not read again") {
  RecoverySpec spec = Options();
  spec.retries_creation = true;
  Fixture f(spec);
  f.AnswerUntilCreation();
  const absl::Status damaged = absl::DataLossError("ckpt-3/shard-0: its checksum is wrong");
  f.Answer(&f.a.create, absl::StatusOr<CreateVariablesReply>(damaged));
  REQUIRE(f.result.has_value());
  CHECK(f.result->status() == damaged);
}

}  // namespace
}  // namespace lockstep::chief
