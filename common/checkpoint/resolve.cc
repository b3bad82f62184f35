#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/manifest.h"
#include "common/fs/folder.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

absl::Status VerifyCheckpoint(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  return reader.Verify();
}

// Steps to try: the one that LATEST names, then the others from the highest down. A LATEST that is
// missing says nothing; one that names nothing sensible is worth a warning.
absl::StatusOr<std::vector<int64_t>> Candidates(const std::string& root,
                                                std::vector<std::string>& warnings) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListCheckpoints(root));
  const std::string path = JoinPath(root, kLatestFile);
  const auto latest = ReadFile(path, kLongestLatest);
  if (!latest.ok()) {
    if (!absl::IsNotFound(latest.status())) warnings.emplace_back(latest.status().message());
    return steps;
  }
  const absl::string_view name = absl::StripAsciiWhitespace(*latest);
  const auto step = ParseCheckpointName(name);
  if (!step.has_value()) {
    warnings.push_back(absl::StrCat(path, ": '", absl::CEscape(name.substr(0, 80)),
                                    "' does not name a checkpoint"));
    return steps;
  }
  std::erase(steps, *step);
  steps.insert(steps.begin(), *step);
  return steps;
}

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestFile);
  const auto text = ReadFile(path, kLargestManifest);
  if (absl::IsInvalidArgument(text.status())) return absl::DataLossError(text.status().message());
  if (!text.ok()) return text.status();
  auto manifest = DecodeManifest(*text);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::StatusOr<std::string> ResolveCheckpoint(const std::string& path,
                                              std::vector<std::string>* warnings) {
  if (!IsFolder(path)) {
    return absl::NotFoundError(absl::StrCat(path, ": no such folder, expected a checkpoint (",
                                            CheckpointName(0), ", ...) or a folder of them"));
  }
  if (InputFile::Open(JoinPath(path, kManifestFile)).ok()) {
    LOCKSTEP_RETURN_IF_ERROR(VerifyCheckpoint(path));
    return path;
  }
  std::vector<std::string> skipped;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Candidates(path, skipped));
  bool broken = false;
  std::string first_problem;
  for (const int64_t step : steps) {
    std::string folder = CheckpointFolder(path, step);
    const absl::Status status = VerifyCheckpoint(folder);
    if (status.ok()) {
      if (warnings != nullptr) warnings->insert(warnings->end(), skipped.begin(), skipped.end());
      return folder;
    }
    skipped.push_back(absl::StrCat("skipped ", folder, ": ", status.message()));
    // A save that was never finished is no broken checkpoint.
    if (!absl::IsNotFound(status) && !broken) {
      broken = true;
      first_problem = std::string(status.message());
    }
  }
  if (warnings != nullptr) warnings->insert(warnings->end(), skipped.begin(), skipped.end());
  if (broken) {
    return absl::DataLossError(
        absl::StrCat(path, ": no checkpoint that can be used; the newest: ", first_problem));
  }
  return absl::NotFoundError(absl::StrCat(path, ": no complete checkpoint (looked for ",
                                          JoinPath(path, kManifestFile), " and ",
                                          JoinPath(path, "ckpt-<step>/manifest.json"), ")"));
}

}  // namespace lockstep
