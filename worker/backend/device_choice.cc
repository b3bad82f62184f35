#include "worker/backend/device_choice.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/exit_code.h"

namespace lockstep::worker {
namespace {

std::optional<int> OrdinalOf(absl::string_view name) {
  int ordinal = 0;
  const bool is_gpu =
      absl::ConsumePrefix(&name, "cuda:") && absl::SimpleAtoi(name, &ordinal) && ordinal >= 0;
  return is_gpu ? std::optional(ordinal) : std::nullopt;
}

}  // namespace

absl::StatusOr<DeviceChoice> ParseDeviceChoice(absl::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return DeviceChoice{};
  if (text == "auto") return DeviceChoice{.kind = Kind::kAuto};
  DeviceChoice choice{.kind = Kind::kCuda};
  if (text == "cuda") return choice;
  for (const absl::string_view name : absl::StrSplit(text, ',')) {
    const std::optional<int> ordinal = OrdinalOf(name);
    if (!ordinal.has_value()) {
      return UsageError(
          absl::StrCat("--device: expected cpu, auto, cuda, or GPUs such as cuda:0,cuda:1, got \"",
                       text, "\". Remedy: --device=auto takes what there is"));
    }
    if (std::ranges::find(choice.ordinals, *ordinal) != choice.ordinals.end()) {
      return UsageError(absl::StrCat("--device: ", name, " comes twice in \"", text,
                                     "\". Remedy: name each GPU once"));
    }
    choice.ordinals.push_back(*ordinal);
  }
  return choice;
}

}  // namespace lockstep::worker
