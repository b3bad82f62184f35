#include "common/base/not_kept.h"

#include <catch2/catch.hpp>

#include "common/base/annotate.h"

namespace lockstep {
namespace {

TEST_CASE("a version that a ps has no more is told from every other refusal, also by its text") {
  const absl::Status answer = NotKeptError(7, "the shard is at step 8");
  CHECK(answer.message() == "version 7 is not kept with its slots, and the shard is at step 8");
  CHECK(IsNotKept(answer));
  CHECK(IsNotKept(Annotate(answer, "ps 1 (a:1)")));
  CHECK_FALSE(IsNotKept(absl::OkStatus()));
  CHECK_FALSE(IsNotKept(absl::FailedPreconditionError("ckpt-7 belongs to another job")));
  CHECK_FALSE(IsNotKept(absl::NotFoundError(answer.message())));
}

}  // namespace
}  // namespace lockstep
