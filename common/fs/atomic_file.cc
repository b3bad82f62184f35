#include "common/fs/atomic_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr char kMark[] = ".lockstep-tmp-";
constexpr mode_t kFileMode = 0640;

std::string TemporaryName(absl::string_view name) {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random)
    random = static_cast<uint64_t>(::getpid());
  // Room for the mark, so that a long name does not make the temporary one too long.
  return absl::StrCat(kMark, absl::Hex(random, absl::kZeroPad16), "-", name.substr(0, 128));
}

}  // namespace

absl::Status MayPublish(const PublishCheck& check) {
  return check == nullptr ? absl::OkStatus() : check();
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LOCKSTEP_RETURN_IF_ERROR(file.Append(contents));
  return file.Commit(check);
}

AtomicFile::AtomicFile(std::string path, FileDescriptor folder, std::string temporary,
                       FileDescriptor file)
    : path_(std::move(path)),
      folder_(std::move(folder)),
      temporary_(std::move(temporary)),
      file_(std::move(file)) {}

AtomicFile::~AtomicFile() {
  if (file_.valid()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path) {
  const std::string name = NameOf(path);
  if (!IsEntryName(name) || absl::EndsWith(path, "/")) {
    return WithExitCode(absl::InvalidArgumentError(absl::StrCat(path, ": not the name of a file")),
                        ExitCode::kCannotCreate);
  }
  const std::string folder_path = FolderOf(path);
  FileDescriptor folder(::open(folder_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return WriteError(folder_path, "open the folder", errno);
  std::string temporary = TemporaryName(name);
  FileDescriptor file(::openat(folder.get(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return WriteError(path, "create", errno);
  return AtomicFile(path, std::move(folder), std::move(temporary), std::move(file));
}

absl::Status AtomicFile::Fail(absl::string_view action, int error_number) {
  return Drop(WriteError(path_, action, error_number));
}

absl::Status AtomicFile::Drop(absl::Status why) {
  status_ = std::move(why);
  ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  file_.Close();
  return status_;
}

absl::Status AtomicFile::Append(std::span<const std::byte> bytes) {
  LOCKSTEP_RETURN_IF_ERROR(status_);
  const int error_number = file_.Write(bytes);
  return error_number == 0 ? absl::OkStatus() : Fail("write", error_number);
}

absl::Status AtomicFile::Append(absl::string_view bytes) {
  return Append(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
}

absl::Status AtomicFile::Commit(const PublishCheck& check) {
  LOCKSTEP_RETURN_IF_ERROR(status_);
  if (::fsync(file_.get()) != 0) return Fail("fsync", errno);
  // Network storage may tell of lost bytes here.
  if (const int error_number = file_.Close()) return Fail("close", error_number);
  if (absl::Status refused = MayPublish(check); !refused.ok()) return Drop(std::move(refused));
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), NameOf(path_).c_str()) != 0)
    return Fail("rename to its name", errno);
  if (::fsync(folder_.get()) != 0) return status_ = WriteError(path_, "fsync its folder", errno);
  return absl::OkStatus();
}

absl::Status RemoveTemporaryFiles(const std::string& folder, const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  // After the listing: what has been listed is older than the answer, and no name is used twice.
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kMark)) continue;
    const std::string path = JoinPath(folder, name);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return WriteError(path, "remove", errno);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
