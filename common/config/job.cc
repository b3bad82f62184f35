#include "common/config/job.h"

#include <filesystem>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/config/job_defaults.h"
#include "common/config/job_rules.h"
#include "common/config/text_file.h"
#include "common/config/text_proto.h"
#include "common/fs/absolute_path.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

absl::StatusOr<std::string> AbsoluteFolderOf(const std::string& path) {
  std::string folder = AbsolutePath(FolderOf(path));
  if (std::filesystem::path(folder).is_absolute()) return folder;
  return absl::NotFoundError(absl::StrCat(
      path, ": the working directory is gone. Remedy: start from a folder that exists"));
}

}  // namespace

absl::StatusOr<LoadedJob> LoadJob(const std::string& path) {
  LoadedJob loaded;
  LOCKSTEP_RETURN_IF_ERROR(ReadTextProto(path, &loaded.job));
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckJob(loaded.job), path));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string folder, AbsoluteFolderOf(path));
  if (!IsUtf8(folder) || !IsUtf8(path)) {
    // No message could name its files.
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", absl::CHexEscape(JoinPath(folder, NameOf(path))),
        "\": the path of the job is not UTF-8 text. Remedy: rename the file or folder"));
  }
  MakePathsAbsolute(folder, &loaded.job);
  FillJobDefaults(path, &loaded.job);
  if (const absl::Status read = ReadTextProto(loaded.job.model(), &loaded.model); !read.ok()) {
    // A mistake in the model is at its line; that there is no such file is one in the job.
    return ExitCodeFor(read) == ExitCode::kInputNotFound
               ? Annotate(read, absl::StrCat(path, ": model"))
               : read;
  }
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckJobAgainstModel(loaded.job, loaded.model), path));
  return loaded;
}

}  // namespace lockstep
