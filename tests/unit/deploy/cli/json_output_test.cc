#include "deploy/cli/json_output.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "common/fs/atomic_file.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::deploy {
namespace {

TEST_CASE("what --json names is written, though temporary files go meanwhile") {
  const test::TemporaryFolder folder;
  auto output = JsonOutput::Create(folder.Path("summary.json"));
  REQUIRE(output.ok());
  // As the chief does in the folder of its checkpoints.
  REQUIRE(RemoveTemporaryFiles(folder.path()).ok());
  REQUIRE(output->Write("{}\n").ok());
  CHECK(folder.Read("summary.json") == "{}\n");
}

TEST_CASE("a --json that cannot be written is refused before the work, with a remedy") {
  const test::TemporaryFolder folder;
  const absl::Status refused = JsonOutput::Create(folder.Path("missing/summary.json")).status();
  CHECK(ExitCodeFor(refused) == ExitCode::kCannotCreate);
  CHECK_THAT(std::string(refused.message()),
             Catch::StartsWith("--json: ") &&
                 Catch::EndsWith("Remedy: name a file in a folder that exists"));
}

TEST_CASE("without --json nothing is written") { CHECK(JsonOutput::Create("")->Write("{}").ok()); }

}  // namespace
}  // namespace lockstep::deploy
