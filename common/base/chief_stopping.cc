#include "common/base/chief_stopping.h"

#include "absl/strings/match.h"

namespace lockstep {
namespace {

// docs/protocol.md promises this text to clients in other languages.
constexpr absl::string_view kChiefStopping = "the chief is stopping";

}  // namespace

absl::Status ChiefStoppingError() { return absl::UnavailableError(kChiefStopping); }

bool IsChiefStopping(const absl::Status& status) {
  return absl::IsUnavailable(status) && absl::StrContains(status.message(), kChiefStopping);
}

}  // namespace lockstep
