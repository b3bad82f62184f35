#include "common/config/cluster_reader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_json.h"
#include "common/config/cluster_proto.h"
#include "common/config/text_file.h"
#include "common/config/text_proto.h"

namespace lockstep {
namespace {

// "path: message", or "path:3:14: message" where the message begins with a place.
absl::Status InSource(absl::string_view source, const absl::Status& status) {
  const bool has_place = absl::ascii_isdigit(status.message()[0]);
  return WithMessage(status, absl::StrCat(source, has_place ? ":" : ": ", status.message()));
}

absl::StatusOr<ClusterSpec> ParseText(const std::string& path, const std::string& text) {
  ClusterDef def;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextProto(path, text, &def));
  return FromProto(def);
}

absl::StatusOr<Role> RoleOfTask(const std::string& type) {
  if (type == "master") return Role::kChief;
  for (Role role : {Role::kPs, Role::kWorker, Role::kChief}) {
    if (type == Name(role)) return role;
  }
  if (type == "evaluator") {
    return absl::InvalidArgumentError(
        "task.type: there is no evaluator process, workers evaluate. Remedy: start ps, worker and "
        "chief tasks only");
  }
  return absl::InvalidArgumentError(absl::StrCat("task.type: expected ps, worker or chief, got \"",
                                                 absl::CHexEscape(type.substr(0, 300)),
                                                 "\". Remedy: start ps, worker and chief tasks"));
}

}  // namespace

absl::StatusOr<ClusterSpec> ReadClusterFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  if (content.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": it is empty. Remedy: write the addresses of ps, worker and chief"));
  }
  ClusterSpec spec;
  if (content[0] == '{' || content[0] == '[') {
    absl::StatusOr<ClusterJson> parsed = ParseClusterJson(text);
    if (!parsed.ok()) return InSource(path, parsed.status());
    spec = std::move(parsed->cluster);
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(spec, ParseText(path, text));
  }
  if (absl::Status status = ValidateCluster(&spec); !status.ok()) return InSource(path, status);
  return spec;
}

absl::StatusOr<TfConfig> ReadTfConfig(const std::string& text) {
  constexpr absl::string_view kSource = "TF_CONFIG";
  const absl::string_view content = absl::StripLeadingAsciiWhitespace(text);
  if (!content.empty() && content[0] != '{' && content[0] != '[') {
    return absl::InvalidArgumentError(
        absl::StrCat(kSource, ": expected JSON, got \"", absl::CHexEscape(content.substr(0, 100)),
                     "\". Remedy: set it to the text itself, {\"cluster\": ...}, or give a file "
                     "with --cluster"));
  }
  absl::StatusOr<ClusterJson> parsed = ParseClusterJson(text);
  if (!parsed.ok()) return InSource(kSource, parsed.status());
  TfConfig config{std::move(parsed->cluster)};
  if (absl::Status status = ValidateCluster(&config.cluster); !status.ok()) {
    return InSource(kSource, status);
  }
  if (parsed->task.has_value()) {
    const absl::StatusOr<Role> role = RoleOfTask(parsed->task->type);
    if (!role.ok()) return InSource(kSource, role.status());
    config.task = TfConfig::Task{*role, parsed->task->index};
  }
  return config;
}

}  // namespace lockstep
