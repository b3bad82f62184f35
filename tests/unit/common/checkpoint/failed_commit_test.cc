// A save whose manifest is there, and whose LATEST cannot be written.
#include <algorithm>
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/checkpoint/example_checkpoint.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;
using test::WriteExample;

TEST_CASE("a save that cannot withdraw its manifest says that the checkpoint stays") {
  const TemporaryFolder root;
  int asked = 0;
  // Asked before the manifest, LATEST and the removal of the manifest.
  const absl::Status saved =
      WriteExample(root.path(), 3, 1, 1, {}, [&asked] {
        const absl::Status answers[] = {absl::OkStatus(), absl::InternalError("LATEST: EIO"),
                                        absl::PermissionDeniedError("remove: EPERM")};
        return answers[std::min(asked++, 2)];
      }).status();
  CHECK(asked == 3);
  CHECK(saved.code() == absl::StatusCode::kInternal);
  CHECK(absl::StartsWith(saved.message(), "LATEST: EIO"));
  CHECK(absl::StrContains(saved.message(), "remove: EPERM"));
  CHECK(absl::StrContains(saved.message(), root.Path("ckpt-3")));
  CHECK(ReadManifest(root.Path("ckpt-3")).ok());
}

}  // namespace
}  // namespace lockstep
