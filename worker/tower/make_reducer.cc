#include "worker/tower/make_reducer.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/optimizer/clipping.h"
#include "common/optimizer_proto/clipping_of.h"
#include "worker/tower/batch_norm_reducer.h"
#include "worker/tower/clipping_reducer.h"
#include "worker/tower/mean_reducer.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<TowerReducer>> MakeReducer(const ReducerOptions& options,
                                                          const ModelGraph& graph, Device* device,
                                                          const OpTable& ops, OpContext* context,
                                                          const ReductionStreams* streams) {
  std::unique_ptr<TowerReducer> reducer;
  if (options.towers > 1 || options.count > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        reducer, MeanReducer::Create(graph, options.count, device, ops, context, streams));
  }
  if (options.towers > 1 && (options.batch_norm_updates == JobDef::EVERY_TOWER ||
                             options.batch_norm_updates == JobDef::FIRST_TOWER)) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        reducer, BatchNormReducer::Create(std::move(reducer), options.batch_norm_updates, graph,
                                          device, ops, context, streams));
  }
  const ClippingRule clipping = ClippingOf(options.clipping);
  if (clipping.kind == ClippingKind::kNone) return reducer;
  return ClippingReducer::Create(std::move(reducer), clipping, graph, device, ops, context,
                                 streams->common());
}

}  // namespace lockstep::worker
