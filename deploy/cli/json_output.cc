#include "deploy/cli/json_output.h"

#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/fs/atomic_file.h"

namespace lockstep::deploy {

absl::StatusOr<JsonOutput> JsonOutput::Create(const std::string& path) {
  JsonOutput output;
  if (path.empty()) return output;
  // Not kept until the end: in a folder of checkpoints the chief deletes temporary files.
  if (const absl::Status made = AtomicFile::Create(path).status(); !made.ok()) {
    return AddRemedy(Annotate(made, "--json"), "name a file in a folder that exists");
  }
  output.path_ = path;
  return output;
}

absl::Status JsonOutput::Write(absl::string_view json) {
  return path_.empty() ? absl::OkStatus() : WriteFileAtomically(path_, json);
}

}  // namespace lockstep::deploy
