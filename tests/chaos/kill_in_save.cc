#include "tests/chaos/kill_in_save.h"

#include <signal.h>
#include <sys/types.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

constexpr char kTemporary[] = "/.lockstep-tmp-";
// A file of a small model has its temporary name for about a millisecond, so most of the time goes
// to looking.
constexpr absl::Duration kLook = absl::Milliseconds(20);
constexpr absl::Duration kStop = absl::Seconds(1);

absl::Duration Now() { return Clock::Real()->Monotonic(); }

// Empty: none. The process may end meanwhile.
std::string TemporaryFileOf(pid_t pid, const std::string& folder) {
  std::error_code error;
  fs::directory_iterator each(absl::StrCat("/proc/", pid, "/fd"), error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code closed;
    const std::string path = fs::read_symlink(each->path(), closed).string();
    if (absl::StartsWith(path, folder + "/") && absl::StrContains(path, kTemporary)) return path;
  }
  return "";
}

// Whether no thread of the process runs, or is in a system call.
bool IsStopped(pid_t pid) {
  std::error_code error;
  fs::directory_iterator each(absl::StrCat("/proc/", pid, "/task"), error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::ifstream file(each->path() / "stat");
    const std::string stat((std::istreambuf_iterator<char>(file)), {});
    // "PID (NAME) STATE ...": a name may have brackets of its own.
    if (!absl::StrContains(stat.substr(stat.rfind(')') + 1, 3), "T")) return false;
  }
  return !error;
}

bool KillIfItSaves(ChaosTask* task, const std::string& folder) {
  const std::string file = TemporaryFileOf(task->pid(), folder);
  if (file.empty()) return false;
  task->Signal(SIGSTOP);
  const absl::Duration deadline = Now() + kStop;
  while (!IsStopped(task->pid()) && Now() < deadline) continue;
  std::error_code error;
  if (IsStopped(task->pid()) && fs::exists(file, error)) {
    task->End(SIGKILL);
    return true;
  }
  task->Signal(SIGCONT);
  return false;
}

class KilledInSave : public OngoingFault {
 public:
  KilledInSave(std::vector<ChaosTask*> tasks, const std::string& folder)
      : tasks_(std::move(tasks)), folder_(folder) {}

  bool Advance(int /*num_advances*/) override {
    const absl::Duration end = Now() + kLook;
    while (killed_ == nullptr && Now() < end) {
      const auto killed = std::ranges::find_if(
          tasks_, [this](ChaosTask* task) { return KillIfItSaves(task, folder_); });
      if (killed != tasks_.end()) killed_ = *killed;
    }
    return killed_ != nullptr;
  }
  // The wait for a save, then what follows the kill.
  int part() const override { return killed_ == nullptr ? 0 : 1; }
  std::string defect() const override { return killed_ == nullptr ? "no save was met" : ""; }
  std::optional<TaskId> hit() const override {
    return killed_ == nullptr ? std::nullopt : std::optional(killed_->id());
  }

 private:
  const std::vector<ChaosTask*> tasks_;
  const std::string folder_;
  ChaosTask* killed_ = nullptr;
};

}  // namespace

std::unique_ptr<OngoingFault> KillInSave(std::vector<ChaosTask*> tasks, const std::string& folder) {
  return std::make_unique<KilledInSave>(std::move(tasks), folder);
}

}  // namespace lockstep::test
