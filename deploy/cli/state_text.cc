#include "deploy/cli/state_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/printable.h"
#include "common/base/quantity.h"

namespace lockstep::deploy {

std::string Shown(const std::string& text) { return Printable(text, text.size()); }

std::string StateText(const ProcessStatus& status) {
  std::string state = Shown(status.state());
  if (status.waiting_for().empty()) return state;
  return absl::StrCat(state == "waiting" ? "" : state + ", ", "waiting for ",
                      Shown(status.waiting_for()));
}

std::string PercentText(double share) { return absl::StrFormat("%.2f %%", 100 * share); }

std::string GradientCount(uint64_t count, uint32_t variables_per_gradient) {
  const uint64_t per_gradient = std::max<uint32_t>(variables_per_gradient, 1);
  return WithCommas(count / per_gradient +
                    (per_gradient > 1 && count % per_gradient * 2 >= per_gradient ? 1 : 0));
}

std::string GradientsText(uint64_t accepted, uint64_t stale, uint32_t variables_per_gradient) {
  return absl::StrCat(GradientCount(accepted, variables_per_gradient), " accepted, ",
                      GradientCount(stale, variables_per_gradient), " stale");
}

}  // namespace lockstep::deploy
