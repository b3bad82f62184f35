// PsControl over gRPC.
#include <grpcpp/channel.h>

#include <utility>

#include "common/client/control_calls.h"
#include "common/client/ps_client.h"
#include "common/rpc/channel.h"
#include "common/rpc/limits.h"
#include "proto/ps.grpc.pb.h"

namespace lockstep {
namespace {

using PsAsync = ParameterServer::StubInterface::async_interface;

class GrpcPsControl final : public PsControl {
 public:
  explicit GrpcPsControl(const ClientOptions& options)
      : stub_(ParameterServer::NewStub(rpc::MakeChannel(options.address))), calls_(options) {}

  void GetView(Done<SetViewReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::GetView, "GetView", GetViewRequest(),
                 rpc::kControlDeadline, std::move(done));
  }
  void SetView(const SetViewRequest& request, Done<SetViewReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::SetView, "SetView", request, rpc::kControlDeadline,
                 std::move(done));
  }
  void CreateVariables(const CreateVariablesRequest& request,
                       Done<CreateVariablesReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::CreateVariables, "CreateVariables", request,
                 rpc::kDiskDeadline, std::move(done));
  }
  void Grant(const GrantRequest& request, Done<GrantReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::Grant, "Grant", request, rpc::kParkedDeadline,
                 std::move(done));
  }
  void CommitStep(const CommitStepRequest& request, Done<CommitStepReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::CommitStep, "CommitStep", request, rpc::kControlDeadline,
                 std::move(done));
  }
  void Save(const SaveRequest& request, Done<SaveReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::Save, "Save", request, rpc::kDiskDeadline,
                 std::move(done));
  }
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                       Done<ReleaseSnapshotReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::ReleaseSnapshot, "ReleaseSnapshot", request,
                 rpc::kControlDeadline, std::move(done));
  }
  void Finish(const FinishRequest& request, Done<FinishReply> done) override {
    calls_.Start(stub_->async(), &PsAsync::Finish, "Finish", request, rpc::kControlDeadline,
                 std::move(done));
  }

 private:
  const std::unique_ptr<ParameterServer::Stub> stub_;
  ControlCalls calls_;
};

}  // namespace

std::unique_ptr<PsControl> MakePsControl(const ClientOptions& options) {
  return std::make_unique<GrpcPsControl>(options);
}

}  // namespace lockstep
