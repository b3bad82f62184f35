#include "worker/service/fitting_backend.h"

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "worker/ops/synthetic.h"

namespace lockstep::worker {
namespace {

// The other kinds are those of every device.
bool HasOp(const LayerDef& layer, const OpTable& ops) {
  if (layer.has_synthetic()) return ops.Has<SyntheticOptions>();
  return !layer.has_custom() || ops.HasCustom(layer.custom().type());
}

}  // namespace

Backend FittingBackend(const Backend& backend, const ModelGraph& graph) {
  if (!backend.is_automatic()) return backend;
  for (const ModelNode& node : graph.nodes()) {
    if (HasOp(node.layer, backend.ops())) continue;
    log::Info(absl::StrCat("computes on the CPU: ", backend.name(), " has no op for layer \"",
                           node.name, "\""));
    return Backend();
  }
  return backend;
}

}  // namespace lockstep::worker
