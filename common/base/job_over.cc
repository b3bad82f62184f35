#include "common/base/job_over.h"

#include "absl/strings/match.h"

namespace lockstep {
namespace {

// docs/protocol.md promises this text to clients in other languages.
constexpr absl::string_view kJobOver = "the job is over";

}  // namespace

absl::Status JobOverError() { return absl::CancelledError(kJobOver); }

bool IsJobOver(const absl::Status& status) {
  return absl::IsCancelled(status) && absl::StrContains(status.message(), kJobOver);
}

}  // namespace lockstep
