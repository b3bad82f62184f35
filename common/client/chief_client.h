// How a worker talks to the chief. Same rules as common/client/ps_client.h.
#pragma once

#include <memory>

#include "common/client/ps_client.h"
#include "proto/chief.pb.h"

namespace lockstep {

class ChiefClient {
 public:
  virtual ~ChiefClient() = default;
  virtual void RegisterTask(const RegisterTaskRequest& request, Done<RegisterTaskReply> done) = 0;
  virtual void Heartbeat(const HeartbeatRequest& request, Done<HeartbeatReply> done) = 0;
  virtual void ReportError(const ReportErrorRequest& request, Done<ReportErrorReply> done) = 0;
};

std::unique_ptr<ChiefClient> MakeChiefClient(const ClientOptions& options);

}  // namespace lockstep
