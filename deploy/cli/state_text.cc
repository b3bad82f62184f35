#include "deploy/cli/state_text.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep::deploy {

std::string Shown(const std::string& text) { return absl::Utf8SafeCHexEscape(text); }

std::string StateText(const ProcessStatus& status) {
  const std::string state = Shown(status.state());
  if (status.waiting_for().empty()) return state;
  return absl::StrCat(state == "waiting" ? "" : state + ", ", "waiting for ",
                      Shown(status.waiting_for()));
}

}  // namespace lockstep::deploy
