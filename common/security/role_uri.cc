#include "common/security/role_uri.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/printable.h"

namespace lockstep::security {
namespace {

constexpr absl::string_view kScheme = "spiffe://";
constexpr size_t kMaxJob = 255;    // SPIFFE's limit of a trust domain
constexpr size_t kMaxShown = 200;  // of a peer's URIs in an error
constexpr size_t kMaxListed = 4;

bool IsJobCharacter(char c) {
  return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '-' || c == '_';
}

std::optional<RoleUri> Parse(absl::string_view uri) {
  if (!absl::ConsumePrefix(&uri, kScheme)) return std::nullopt;
  const size_t slash = uri.find('/');
  if (slash == absl::string_view::npos) return std::nullopt;
  const absl::string_view job = uri.substr(0, slash);
  const std::optional<Caller> caller = ParseCaller(uri.substr(slash + 1));
  if (!CheckJobName(job).ok() || !caller.has_value()) return std::nullopt;
  return RoleUri{std::string(job), *caller};
}

std::string Shown(absl::Span<const std::string> uris) {
  if (uris.empty()) return "none";
  const auto listed = uris.subspan(0, kMaxListed);
  const std::string all =
      absl::StrCat(absl::StrJoin(listed, ", "), uris.size() > listed.size() ? ", ..." : "");
  return Printable(all, kMaxShown);
}

}  // namespace

std::string ToString(const RoleUri& role) {
  return absl::StrCat(kScheme, role.job, "/", ToString(role.caller));
}

absl::Status CheckJobName(absl::string_view job) {
  if (!job.empty() && job.size() <= kMaxJob && std::ranges::all_of(job, IsJobCharacter)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the job's name in certificates must be 1 to ", kMaxJob,
      " lower-case letters, digits, '.', '-' or '_', got \"", Printable(job, kMaxShown), "\""));
}

absl::StatusOr<RoleUri> RoleOf(absl::Span<const std::string> uris) {
  std::optional<RoleUri> role;
  if (uris.size() == 1) role = Parse(uris[0]);
  if (role.has_value()) return *std::move(role);
  return absl::UnauthenticatedError(absl::StrCat(
      "the certificate names no role: expected one URI such as spiffe://JOB/worker/1 in its "
      "subject alternative names, got ",
      Shown(uris), ". Remedy: ./lockstep certificates makes such certificates (docs/security.md)"));
}

absl::Status CheckJob(const RoleUri& role, absl::string_view job) {
  if (role.job == job) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the certificate is of job ", role.job, ", expected job ", job,
                   ". Remedy: give every process of a job certificates of that job"));
}

}  // namespace lockstep::security
