#include "tests/bench/local_job.h"

#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fs/atomic_file.h"
#include "common/fs/path.h"
#include "deploy/cli/child_process.h"
#include "deploy/cli/last_lines.h"
#include "tests/bench/built.h"

namespace lockstep::bench {
namespace {

constexpr int kLinesOfLog = 20;

class Folder {
 public:
  static absl::StatusOr<Folder> Create() {
    std::string path = JoinPath(std::filesystem::temp_directory_path().string(), "lockstep-XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return absl::InternalError(absl::StrCat(path, ": ", std::strerror(errno)));
    }
    return Folder(std::move(path));
  }
  Folder(Folder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  std::string File(const std::string& name) const { return JoinPath(path_, name); }

 private:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace

absl::StatusOr<deploy::Summary> RunLocalJob(const JobFiles& files,
                                            const std::vector<std::string>& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Folder folder, Folder::Create());
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(folder.File("job.textproto"), files.job));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(folder.File("model.textproto"), files.model));
  if (!files.data.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(folder.File("data.csv"), files.data));
  }
  deploy::Command up = {
      .name = "lockstep up",
      .arguments = {BuiltProgram("deploy/cli/up"), "--job=" + folder.File("job.textproto"),
                    "--run_dir=" + folder.File("run"), "--json=" + folder.File("summary.json")},
      .log_path = folder.File("output")};
  up.arguments.insert(up.arguments.end(), flags.begin(), flags.end());
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, deploy::Start(up));
  int wait_status = 0;
  while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (deploy::ExitCodeOf(wait_status) != 0) {
    std::string output;
    for (const std::string& line : deploy::LastLines(up.log_path, kLinesOfLog)) {
      absl::StrAppend(&output, "\n  ", line);
    }
    return absl::InternalError(
        absl::StrCat("the job ended with ", deploy::DescribeEnd(wait_status), output));
  }
  return deploy::ReadSummary(folder.File("summary.json"));
}

absl::StatusOr<std::vector<std::vector<StepLine>>> RunForTimelines(
    const JobFiles& files, int workers, const std::vector<std::string>& flags) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Folder folder, Folder::Create());
  std::vector<std::string> all = flags;
  all.push_back("--timeline_dir=" + folder.File("timelines"));
  LOCKSTEP_RETURN_IF_ERROR(RunLocalJob(files, all).status());
  std::vector<std::vector<StepLine>> timelines;
  for (int worker = 0; worker < workers; ++worker) {
    const std::string name = absl::StrCat("timelines/worker-", worker, ".csv");
    LOCKSTEP_ASSIGN_OR_RETURN(timelines.emplace_back(), ReadTimeline(folder.File(name)));
  }
  return timelines;
}

}  // namespace lockstep::bench
