#include "worker/backend/device_choice.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/exit_code.h"

namespace lockstep::worker {

absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return DeviceChoice{};
  if (text == "auto") return DeviceChoice{.kind = Kind::kAuto};
  if (text == "cuda") return DeviceChoice{.kind = Kind::kCuda};
  if (absl::StrContains(text, ',')) {
    return UsageError(absl::StrCat("--device: expected one device, got \"", text,
                                   "\". Remedy: a worker for each GPU"));
  }
  DeviceChoice choice{.kind = Kind::kCuda};
  absl::string_view ordinal = text;
  if (absl::ConsumePrefix(&ordinal, "cuda:") && absl::SimpleAtoi(ordinal, &choice.ordinal) &&
      choice.ordinal >= 0) {
    return choice;
  }
  return UsageError(
      absl::StrCat("--device: expected cpu, auto, cuda or cuda:N, got \"", text, "\""));
}

}  // namespace lockstep::worker
