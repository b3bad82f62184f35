#include "deploy/cli/json_output.h"

#include <utility>

#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"

namespace lockstep::deploy {

absl::StatusOr<JsonOutput> JsonOutput::Create(const std::string& path) {
  JsonOutput output;
  if (path.empty()) return output;
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(path);
  if (!file.ok()) {
    return AddRemedy(Annotate(file.status(), "--json"), "name a file in a folder that exists");
  }
  output.file_.emplace(*std::move(file));
  return output;
}

absl::Status JsonOutput::Write(absl::string_view json) {
  if (!file_) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(file_->Append(json));
  return file_->Commit();
}

}  // namespace lockstep::deploy
