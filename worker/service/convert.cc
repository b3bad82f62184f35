#include "worker/service/convert.h"

namespace lockstep::worker {

void SetFailedView(const GroupViewId& failed, HeartbeatRequest* request) {
  request->set_failed_term(failed.term);
  request->set_failed_epoch(failed.epoch);
  request->set_failed_view(failed.view);
}

}  // namespace lockstep::worker
