#include "common/config/output_flag.h"

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

absl::Status OutputFlagError(absl::string_view flag, const absl::Status& status) {
  return Annotate(AddRemedy(status, "name a file in a folder in which this user may write"), flag);
}

absl::Status CheckOutputFlag(absl::string_view flag, const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  return OutputFlagError(absl::StrCat(flag, "=", path), AtomicFile::Create(path).status());
}

}  // namespace lockstep
