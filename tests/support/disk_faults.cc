// The functions here must be the C library's to the letter, without checks of buffer sizes.
#undef _FORTIFY_SOURCE
#include "tests/support/disk_faults.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

namespace lockstep::test {
namespace {

constexpr char kVariable[] = "LOCKSTEP_DISK_FAULTS";
constexpr int kNoError = 0;

const std::map<std::string, int>& Errors() {
  static const auto* const errors = new std::map<std::string, int>{
      {"EACCES", EACCES}, {"EDQUOT", EDQUOT}, {"EEXIST", EEXIST},      {"EINTR", EINTR},
      {"EIO", EIO},       {"EMFILE", EMFILE}, {"ENOENT", ENOENT},      {"ENOSPC", ENOSPC},
      {"EROFS", EROFS},   {"ESTALE", ESTALE}, {"ETIMEDOUT", ETIMEDOUT}};
  return *errors;
}

struct Fault {
  std::string folder;
  std::string operation;
  std::string name;
  int nth = 0;  // 0: all
  std::string action;
  int error = kNoError;  // of the action
  int matched = 0;
  bool has_stopped = false;
};

[[noreturn]] void Refuse(const std::string& text) {
  std::fprintf(stderr, "disk faults: cannot read \"%s\"\n", text.c_str());
  std::abort();
}

Fault ParseFault(const std::string& text) {
  std::istringstream fields(text);
  Fault fault;
  std::string nth;
  std::getline(fields, fault.folder, ',');
  std::getline(fields, fault.operation, ',');
  std::getline(fields, fault.name, ',');
  std::getline(fields, nth, ',');
  std::getline(fields, fault.action, ',');
  const auto error = Errors().find(fault.action);
  const bool is_known = error != Errors().end() || fault.action == "short" ||
                        fault.action == "zero" || fault.action == "stop" ||
                        fault.action == "hang" || fault.action.starts_with("kill_");
  if (fault.folder.empty() || nth.empty() || !is_known) Refuse(text);
  if (error != Errors().end()) fault.error = error->second;
  fault.nth = nth == "*" ? 0 : std::atoi(nth.c_str());
  return fault;
}

bool IsBelow(const std::string& path, const std::string& folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

// What happens to one operation.
struct Decision {
  std::string action;
  int error = kNoError;
  bool is_below = false;  // one of the folders
  bool tears = false;     // a write takes half of the bytes, and fails
  int generation = 0;     // of the faults that decided
};

class Disk {
 public:
  // Never destroyed: files are closed until the very end.
  static Disk& Get() {
    static Disk* const disk = new Disk;
    return *disk;
  }

  Disk() {
    if (const char* const faults = std::getenv(kVariable)) Set(faults);
  }

  void Set(const std::string& text) {
    std::vector<Fault> faults;
    std::istringstream all(text);
    for (std::string one; std::getline(all, one, ';');) faults.push_back(ParseFault(one));
    const std::lock_guard lock(mutex_);
    faults_ = std::move(faults);
    has_faults_ = !faults_.empty();
    matched_.clear();
    failed_.clear();
    changes_.clear();
    if (!has_faults_) paths_.clear();
    ++generation_;
    changed_.notify_all();
  }

  // Than those of this generation, which may be gone already.
  void AwaitOtherFaults(int generation) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return generation_ != generation; });
  }

  bool has_faults() const { return has_faults_; }

  Decision Decide(const std::string& operation, const std::string& path) {
    Decision decision;
    const std::lock_guard lock(mutex_);
    bool has_matched = false;
    for (Fault& fault : faults_) {
      if (!IsBelow(path, fault.folder)) continue;
      decision.is_below = true;
      if (fault.has_stopped) decision.action = fault.action, decision.error = EIO;
      if (fault.operation != "any" && fault.operation != operation) continue;
      if (path.find(fault.name) == std::string::npos) continue;
      ++fault.matched;
      has_matched = true;
      if (fault.nth != 0 && fault.nth != fault.matched) continue;
      if (fault.action == "stop" && !std::exchange(fault.has_stopped, true)) {
        decision = {.action = fault.action, .error = EIO, .is_below = true, .tears = true};
      }
      if (decision.action.empty()) decision.action = fault.action, decision.error = fault.error;
    }
    if (has_matched) matched_.push_back(operation + " " + path);
    if (!decision.action.empty()) failed_.push_back(operation + " " + path);
    decision.generation = generation_;
    return decision;
  }

  void NoteOpen(int file, const std::string& path) {
    const std::lock_guard lock(mutex_);
    paths_[file] = path;
  }
  void NoteClose(int file) {
    const std::lock_guard lock(mutex_);
    paths_.erase(file);
  }
  // Empty: of none that was opened since there are faults.
  std::string PathOf(int file) {
    const std::lock_guard lock(mutex_);
    const auto found = paths_.find(file);
    return found == paths_.end() ? "" : found->second;
  }
  std::string PathAt(int folder, const char* name) {
    if (name[0] == '/') return name;
    const std::string parent = PathOf(folder);
    return parent.empty() ? "" : parent + "/" + name;
  }

  void NoteChange(DiskChange change) {
    const std::lock_guard lock(mutex_);
    const auto is_below = [&](const Fault& fault) { return IsBelow(change.path, fault.folder); };
    if (std::ranges::any_of(faults_, is_below)) changes_.push_back(std::move(change));
  }

  std::vector<DiskChange> changes() {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  std::vector<std::string> matched() {
    const std::lock_guard lock(mutex_);
    return matched_;
  }
  std::vector<std::string> failed() {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::atomic<bool> has_faults_ = false;
  std::vector<Fault> faults_;
  std::vector<std::string> matched_;
  std::vector<std::string> failed_;
  std::vector<DiskChange> changes_;
  std::map<int, std::string> paths_;  // of open files
  std::condition_variable changed_;
  int generation_ = 0;  // of the faults
};

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  ::_exit(128 + SIGKILL);
}

// Makes the call, or what a fault says in its place. `call` gets the decision. `change` is what it
// changes below a folder; without an operation: nothing.
template <typename Call>
auto Pass(const char* operation, const std::string& path, Call call, DiskChange change = {})
    -> decltype(call(Decision())) {
  if (path.empty() || !Disk::Get().has_faults()) return call(Decision());
  const Decision decision = Disk::Get().Decide(operation, path);
  if (decision.action == "kill_before") Die();
  if (decision.action == "hang") Disk::Get().AwaitOtherFaults(decision.generation);
  if (decision.tears && operation == std::string("write")) (void)call(decision);
  if (decision.error != kNoError) {
    errno = decision.error;
    return -1;
  }
  const auto result = call(decision);
  if (decision.action == "kill_after" || decision.action == "kill_half") Die();
  if (result < 0 || change.operation.empty()) return result;
  // A write may have taken fewer.
  if (!change.bytes.empty()) change.bytes.resize(static_cast<size_t>(result));
  Disk::Get().NoteChange(std::move(change));
  return result;
}

size_t Cut(const Decision& decision, size_t bytes) {
  if (decision.action == "zero") return 0;
  const bool is_cut =
      decision.action == "short" || decision.action == "kill_half" || decision.tears;
  return is_cut && bytes > 1 ? bytes / 2 : bytes;
}

// Empty where nobody wants to know.
std::string PathAt(int folder, const char* name) {
  return Disk::Get().has_faults() ? Disk::Get().PathAt(folder, name) : "";
}
std::string PathOf(int file) { return Disk::Get().has_faults() ? Disk::Get().PathOf(file) : ""; }

int Open(int folder, const char* name, int flags, mode_t mode) {
  const std::string path = PathAt(folder, name);
  const auto call = [&](const Decision&) {
    return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
  };
  const bool creates = (flags & O_CREAT) != 0;
  const int file = Pass("open", path, call, {creates ? "create" : "", path});
  if (file >= 0 && !path.empty()) Disk::Get().NoteOpen(file, path);
  return file;
}

ssize_t Read(int file, size_t bytes, auto call) {
  return Pass("read", PathOf(file),
              [&](const Decision& decision) -> ssize_t { return call(Cut(decision, bytes)); });
}

ssize_t Write(int file, const void* from, size_t bytes) {
  const std::string path = PathOf(file);
  const auto call = [&](const Decision& decision) -> ssize_t {
    return ::syscall(SYS_write, file, from, Cut(decision, bytes));
  };
  const size_t noted = path.empty() ? 0 : bytes;
  return Pass("write", path, call,
              {"write", path, "", std::string(static_cast<const char*>(from), noted)});
}

// A failed sync may have lost what was not on the disk yet.
int Sync(int file, long number) {
  const std::string path = PathOf(file);
  bool was_passed = false;
  const auto call = [&](const Decision& decision) {
    was_passed = true;
    return decision.is_below ? 0 : static_cast<int>(::syscall(number, file));
  };
  const int result = Pass("sync", path, call, {"sync", path});
  if (was_passed) return result;
  const int error = errno;
  struct stat info;
  if (::syscall(SYS_fstat, file, &info) == 0 && S_ISREG(info.st_mode)) {
    (void)::syscall(SYS_ftruncate, file, info.st_size / 2);
  }
  errno = error;
  return result;
}

// The descriptor is gone also where that fails.
int Close(int file) {
  const std::string path = PathOf(file);
  if (!path.empty()) Disk::Get().NoteClose(file);
  bool was_passed = false;
  const int result = Pass("close", path, [&](const Decision&) {
    was_passed = true;
    return static_cast<int>(::syscall(SYS_close, file));
  });
  if (was_passed) return result;
  const int error = errno;
  (void)::syscall(SYS_close, file);
  errno = error;
  return result;
}

int Rename(int from_folder, const char* from, int to_folder, const char* to) {
  const std::string path = PathAt(to_folder, to);
  const auto call = [&](const Decision&) {
    return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0));
  };
  return Pass("rename", path, call, {"rename", path, PathAt(from_folder, from)});
}

// Of a call that only passes its arguments on. `operation` is the change, too, if it changes.
template <typename... Arguments>
int Simple(const char* operation, const std::string& path, bool changes, long number,
           Arguments... arguments) {
  const auto call = [&](const Decision&) {
    return static_cast<int>(::syscall(number, arguments...));
  };
  return Pass(operation, path, call, {changes ? operation : "", path});
}

mode_t ModeOf(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

void SetDiskFaults(const std::string& faults) { Disk::Get().Set(faults); }
std::string NoSyncsBelow(const std::string& folder) { return folder + ",sync,nothing,1,EIO"; }
std::vector<std::string> MatchedDiskOperations() { return Disk::Get().matched(); }
std::vector<std::string> FailedDiskOperations() { return Disk::Get().failed(); }
std::vector<DiskChange> DiskChanges() { return Disk::Get().changes(); }

}  // namespace lockstep::test

namespace faulty = lockstep::test;

extern "C" {

int open(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = faulty::ModeOf(flags, arguments);
  va_end(arguments);
  return faulty::Open(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = faulty::ModeOf(flags, arguments);
  va_end(arguments);
  return faulty::Open(folder, name, flags, mode);
}

ssize_t write(int file, const void* from, size_t bytes) { return faulty::Write(file, from, bytes); }

ssize_t read(int file, void* to, size_t bytes) {
  return faulty::Read(file, bytes,
                      [&](size_t size) { return ::syscall(SYS_read, file, to, size); });
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  return faulty::Read(file, bytes,
                      [&](size_t size) { return ::syscall(SYS_pread64, file, to, size, offset); });
}

int fsync(int file) { return faulty::Sync(file, SYS_fsync); }
int fdatasync(int file) { return faulty::Sync(file, SYS_fdatasync); }
int close(int file) { return faulty::Close(file); }

int ftruncate(int file, off_t size) noexcept {
  return faulty::Simple("truncate", faulty::PathOf(file), true, SYS_ftruncate, file, size);
}

int rename(const char* from, const char* to) noexcept {
  return faulty::Rename(AT_FDCWD, from, AT_FDCWD, to);
}
int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return faulty::Rename(from_folder, from, to_folder, to);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  return faulty::Simple("remove", faulty::PathAt(folder, name), true, SYS_unlinkat, folder, name,
                        flags);
}
int unlink(const char* name) noexcept { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) noexcept { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdir(const char* name, mode_t mode) noexcept {
  return faulty::Simple("mkdir", faulty::PathAt(AT_FDCWD, name), true, SYS_mkdirat, AT_FDCWD, name,
                        mode);
}

int stat(const char* name, struct stat* info) noexcept {
  return faulty::Simple("stat", faulty::PathAt(AT_FDCWD, name), false, SYS_newfstatat, AT_FDCWD,
                        name, info, 0);
}

int fstat(int file, struct stat* info) noexcept {
  return faulty::Simple("stat", faulty::PathOf(file), false, SYS_fstat, file, info);
}

}  // extern "C"
