#include "common/config/listen.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/remedy.h"
#include "common/config/address.h"

namespace lockstep {

absl::StatusOr<std::string> ListenAddress(const std::string& flag, const std::string& advertised) {
  if (flag.empty()) return advertised;
  const absl::StatusOr<Address> address = ParseAddress(flag);
  if (!address.ok()) {
    return SetRemedy(UsageError(absl::StrCat("--listen: ", address.status().message())),
                     "--listen=HOST:PORT, such as 0.0.0.0:2222");
  }
  return address->ToString();
}

}  // namespace lockstep
