// What an archive for other machines holds, and its own entry script.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "tests/integration/script_tree.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kShort = absl::Seconds(20);

TEST_CASE("an archive has the examples without what jobs have written beside them") {
  const Tree tree;
  const TemporaryFolder& folder = tree.folder();
  folder.Write("deploy/examples/digits/job.textproto", "name: 'digits'");
  folder.Write("deploy/examples/digits/checkpoints/ckpt-600/shard-0-of-1.safetensors", "values");
  folder.Write("deploy/data/digits/LICENSE", "free");
  folder.Write("archive/deploy/cli/up", "program");
  const Ended copied = RunToEnd({"/bin/bash", "-euc",
                                 "root=$0; . \"$root/deploy/cli/bundle.sh\"; "
                                 "copy_examples \"$root/archive\"",
                                 folder.path()},
                                kShort);
  INFO(copied.output);
  REQUIRE(copied.exit_code == 0);
  CHECK(folder.Read("archive/deploy/examples/digits/job.textproto") == "name: 'digits'");
  CHECK(folder.Read("archive/deploy/data/digits/LICENSE") == "free");
  CHECK_FALSE(std::filesystem::exists(folder.Path("archive/deploy/examples/digits/checkpoints")));
}

TEST_CASE("the archive's script says which word is missing") {
  const Ended run = RunToEnd({Binary("deploy/bundle/lockstep"), "run"}, kShort);
  CHECK(run.exit_code == 64);
  CHECK_THAT(run.output, Contains("run: no program is named. Remedy: lockstep run worker/worker"));
}

}  // namespace
}  // namespace lockstep::test
