// The scripts of a Slurm job without Slurm, with programs in the place of its and of ours.
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
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

// One argument a line.
constexpr char kWritesArguments[] = R"sh(#!/bin/bash
printf '%s\n' "$@" >"$LOCKSTEP_RUN/arguments"
)sh";

void WriteProgram(const TemporaryFolder& folder, const std::string& name,
                  const std::string& script) {
  std::filesystem::permissions(folder.Write(name, script), std::filesystem::perms::owner_all);
}

// What the chief was started with, a line for each start, but for what names the cluster.
std::string StartsWith(const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.Path("logs"));
  WriteProgram(folder, "chief/chief", kChief);
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

TEST_CASE("flags of a ps and a worker under Slurm may have spaces, in quotes") {
  for (const char* role : {"ps", "worker"}) {
    CAPTURE(role);
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder.Path("logs"));
    WriteProgram(folder, absl::StrCat(role, "/", role), kWritesArguments);
    const std::string flags = absl::StrCat("LOCKSTEP_", role == std::string("ps") ? "PS" : "WORKER",
                                           R"(_FLAGS=--one='a b'  "--two=$(exit) *"  --three)");
    const Ended ended = RunToEnd(
        {Binary("deploy/slurm/task.sh"), "job"}, absl::Seconds(30),
        {role == std::string("ps") ? "SLURM_LOCALID=0" : "SLURM_LOCALID=1", "SLURM_NODEID=0", flags,
         "LOCKSTEP_RUN=" + folder.path(), "LOCKSTEP_BIN=" + folder.path()});
    INFO(folder.Read(absl::StrCat("logs/", role, "-0.log")));
    CHECK(ended.exit_code == 0);
    CHECK_THAT(folder.Read("arguments"),
               Catch::EndsWith("\n--one=a b\n--two=$(exit) *\n--three\n"));
  }
}

TEST_CASE("flags of a ps under Slurm with half of a pair of quotes end the job with a reason") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.Path("logs"));
  const Ended ended = RunToEnd({Binary("deploy/slurm/task.sh"), "job"}, absl::Seconds(30),
                               {"SLURM_LOCALID=0", "SLURM_NODEID=0", "LOCKSTEP_PS_FLAGS=--one='a b",
                                "LOCKSTEP_RUN=" + folder.path(), "LOCKSTEP_BIN=" + folder.path()});
  CHECK(ended.exit_code == 64);
  CHECK(folder.Read("exit_code") == "64 ps-0\n");
  CHECK_THAT(folder.Read("logs/ps-0.log"),
             Catch::Contains("flags of ps-0: expected quotes in pairs, got: --one='a b"));
}

TEST_CASE("the job script says so where it is not run by Slurm, or without a job") {
  const std::string script = Binary("deploy/slurm/lockstep.sbatch");
  const Ended by_hand = RunToEnd(
      {"/usr/bin/env", "--unset=SLURM_JOB_ID", "/bin/bash", script, "job"}, absl::Seconds(30));
  CHECK(by_hand.exit_code == 64);
  CHECK_THAT(by_hand.output, Catch::Contains("not run by Slurm. Remedy: submit it with sbatch"));
  const Ended without_job = RunToEnd({"/bin/bash", script}, absl::Seconds(30));
  CHECK(without_job.exit_code == 64);
  CHECK_THAT(without_job.output, Catch::StartsWith("usage: sbatch "));
}

TEST_CASE("a job under Slurm runs in folders whose paths have spaces") {
  const TemporaryFolder folder;
  const std::string scripts = "the project/deploy/slurm/";
  for (const char* script : {"lockstep.sbatch", "task.sh"}) {
    std::filesystem::create_directories(folder.Path(scripts));
    std::filesystem::copy_file(Binary(absl::StrCat("deploy/slurm/", script)),
                               folder.Path(scripts + script));
  }
  for (const char* program : {"ps/ps", "worker/worker", "chief/chief", "deploy/cli/certificates"}) {
    WriteProgram(folder, absl::StrCat("the project/bazel-bin/", program), kWritesArguments);
  }
  // What Slurm says of the job has its arguments, and then other fields.
  WriteProgram(
      folder, "bin/scontrol",
      absl::StrCat("#!/bin/bash\ncase $3 in\n  job) echo 'JobId=7 JobName=lockstep Command=",
                   folder.Path(scripts + "lockstep.sbatch"),
                   " my job --drain=3 WorkDir=/tmp Power=' ;;\n"
                   "  node) echo 'NodeName=n Arch=x86_64 NodeAddr=10.0.0.1 Version=1' ;;\n"
                   "esac\n"));
  WriteProgram(folder, "bin/srun", kWritesArguments);
  std::filesystem::create_directory(folder.Path("my runs"));
  const Ended ended =
      RunToEnd({"/bin/bash", "-c", "cd \"$0\" && shift && exec bash \"$@\"", folder.Path("my runs"),
                "-", folder.Path(scripts + "lockstep.sbatch"), "my job", "--drain=3"},
               absl::Seconds(30),
               {absl::StrCat("PATH=", folder.Path("bin"), ":/usr/bin:/bin"), "SLURM_JOB_ID=7",
                "SLURM_JOB_NODELIST=n"});
  INFO(ended.output);
  CHECK(ended.exit_code == 0);
  CHECK_THAT(folder.Read("my runs/slurm-7/arguments"),
             Catch::EndsWith("/the project/deploy/slurm/task.sh\nmy job\n--drain=3\n"));
}

}  // namespace
}  // namespace lockstep::test
