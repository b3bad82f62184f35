#include "common/base/annotate.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace lockstep {

absl::Status Annotate(const absl::Status& status, absl::string_view where) {
  return WithMessage(status, absl::StrCat(where, ": ", status.message()));
}

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&result](absl::string_view type, const absl::Cord& payload) {
    result.SetPayload(type, payload);
  });
  return result;
}

}  // namespace lockstep
