// PsControl makes a chief's calls to a ps. docs/protocol.md explains each call.
#pragma once

#include <memory>

#include "common/client/service_client.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/peer.h"
#include "proto/ps.pb.h"

namespace lockstep {

struct PsControlService;
using PsControl = ServiceClient<PsControlService>;

template <typename Request, typename Reply>
using PsMethod = Method<PsControlService, Request, Reply>;

inline constexpr PsMethod<GetViewRequest, SetViewReply> kGetView{
    {"/lockstep.ParameterServer/GetView", rpc::kControlDeadline}};
inline constexpr PsMethod<SetViewRequest, SetViewReply> kSetView{
    {"/lockstep.ParameterServer/SetView", rpc::kControlDeadline}};
inline constexpr PsMethod<CreateVariablesRequest, CreateVariablesReply> kCreateVariables{
    {"/lockstep.ParameterServer/CreateVariables", rpc::kDiskDeadline}};
inline constexpr PsMethod<GrantRequest, GrantReply> kGrant{
    {"/lockstep.ParameterServer/Grant", rpc::kParkedDeadline}};
inline constexpr PsMethod<CommitStepRequest, CommitStepReply> kCommitStep{
    {"/lockstep.ParameterServer/CommitStep", rpc::kControlDeadline}};
inline constexpr PsMethod<SaveRequest, SaveReply> kSave{
    {"/lockstep.ParameterServer/Save", rpc::kDiskDeadline}};
inline constexpr PsMethod<ReleaseSnapshotRequest, ReleaseSnapshotReply> kReleaseSnapshot{
    {"/lockstep.ParameterServer/ReleaseSnapshot", rpc::kControlDeadline}};
inline constexpr PsMethod<FinishRequest, FinishReply> kFinish{
    {"/lockstep.ParameterServer/Finish", rpc::kControlDeadline}};
inline constexpr PsMethod<RenewLeaseRequest, RenewLeaseReply> kRenewLease{
    {"/lockstep.ParameterServer/RenewLease", rpc::kControlDeadline}};
inline constexpr PsMethod<WatchCommandRequest, WatchCommandReply> kWatchCommand{
    {"/lockstep.ParameterServer/WatchCommand", rpc::kParkedDeadline}};

// The first call connects.
std::unique_ptr<PsControl> MakePsControl(const ClientOptions& options);

}  // namespace lockstep
