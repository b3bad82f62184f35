// ChiefClient makes a worker's calls to the chief. docs/protocol.md explains each call.
#pragma once

#include <memory>

#include "common/client/service_client.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/peer.h"
#include "proto/chief.pb.h"

namespace lockstep {

struct ChiefService;
using ChiefClient = ServiceClient<ChiefService>;

template <typename Request, typename Reply>
using ChiefMethod = Method<ChiefService, Request, Reply>;

inline constexpr ChiefMethod<RegisterTaskRequest, RegisterTaskReply> kRegisterTask{
    {"/lockstep.Chief/RegisterTask", rpc::kParkedDeadline}};
inline constexpr ChiefMethod<HeartbeatRequest, HeartbeatReply> kHeartbeat{
    {"/lockstep.Chief/Heartbeat", rpc::kControlDeadline}};
inline constexpr ChiefMethod<ReportErrorRequest, ReportErrorReply> kReportError{
    {"/lockstep.Chief/ReportError", rpc::kControlDeadline}};

// The first call connects.
std::unique_ptr<ChiefClient> MakeChiefClient(const ClientOptions& options);

}  // namespace lockstep
