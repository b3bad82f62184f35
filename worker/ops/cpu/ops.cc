#include "worker/ops/cpu/ops.h"

#include "worker/ops/cpu/registration.h"

namespace lockstep::worker::cpu {

OpTable& MutableOps() {
  static OpTable table([](Device* device) {
    return CatchErrors<OpTable::MadeOr<OpContext>>(
        "oneDNN", [device] { return std::make_unique<OneDnn>(device); });
  });
  return table;
}

const OpTable& Ops() { return MutableOps(); }

}  // namespace lockstep::worker::cpu
