#include "common/base/remedy.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"

namespace lockstep {
namespace {

constexpr absl::string_view kRemedy = ". Remedy: ";

}  // namespace

absl::Status AddRemedy(const absl::Status& status, absl::string_view remedy) {
  if (absl::StrContains(status.message(), kRemedy)) return status;
  return SetRemedy(status, remedy);
}

absl::Status SetRemedy(const absl::Status& status, absl::string_view remedy) {
  const absl::string_view problem = status.message().substr(0, status.message().find(kRemedy));
  return WithMessage(status, absl::StrCat(problem, kRemedy, remedy));
}

}  // namespace lockstep
