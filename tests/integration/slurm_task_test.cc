// The flags with which the task of a Slurm job starts its chief: without Slurm, with a program in
// the place of the chief.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

// Dies twice: before it trains, and after training has begun.
constexpr char kChief[] = R"sh(#!/bin/bash
run=${1#--cluster=}
run=${run%/*}
echo "${@:5}" >>"$run/starts"
case $(wc -l <"$run/starts") in
  1) exit 137 ;;
  2) echo "2026-11-29T00:00:00.000000Z I chief: training begins at step 0 of 9" && exit 137 ;;
esac
)sh";

// What the chief was started with, a line for each start, but for what names the cluster.
std::string StartsWith(const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  for (const char* path : {"logs", "chief"}) {
    std::filesystem::create_directory(folder.Path(path));
  }
  const std::string chief = folder.Write("chief/chief", kChief);
  std::filesystem::permissions(chief, std::filesystem::perms::owner_all);
  std::vector<std::string> command = {Binary("deploy/slurm/task.sh"), "job"};
  command.insert(command.end(), flags.begin(), flags.end());
  const Ended ended = RunToEnd(command, absl::Seconds(30),
                               {"SLURM_LOCALID=2", "SLURM_NODEID=0",
                                "LOCKSTEP_RUN=" + folder.path(), "LOCKSTEP_BIN=" + folder.path()});
  INFO(folder.Read("logs/chief.log"));
  CHECK(ended.exit_code == 0);
  return folder.Read("starts");
}

TEST_CASE("a chief under Slurm resumes, or starts as it was told until training has begun") {
  CHECK(StartsWith({}) == "--job=job --resume\n--job=job --resume\n--job=job --resume\n");
  CHECK(StartsWith({"--fresh", "--drain=3"}) ==
        "--job=job --drain=3 --fresh\n--job=job --drain=3 --fresh\n--job=job --drain=3 --resume\n");
  CHECK(StartsWith({"--restore=/c/ckpt-7"}) ==
        "--job=job --restore=/c/ckpt-7\n--job=job --restore=/c/ckpt-7\n--job=job --resume\n");
}

}  // namespace
}  // namespace lockstep::test
