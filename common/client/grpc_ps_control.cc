// PsControl over gRPC.
#include <utility>

#include "common/client/ps_client.h"
#include "common/rpc/limits.h"
#include "common/transport/grpc/raw_channel.h"

namespace lockstep {
namespace {

class GrpcPsControl final : public PsControl {
 public:
  explicit GrpcPsControl(const ClientOptions& options) : channel_(options) {}

  void GetView(Done<SetViewReply> done) override {
    channel_.Call("/lockstep.ParameterServer/GetView", GetViewRequest(), rpc::kControlDeadline,
                  std::move(done));
  }
  void SetView(const SetViewRequest& request, Done<SetViewReply> done) override {
    channel_.Call("/lockstep.ParameterServer/SetView", request, rpc::kControlDeadline,
                  std::move(done));
  }
  void CreateVariables(const CreateVariablesRequest& request,
                       Done<CreateVariablesReply> done) override {
    channel_.Call("/lockstep.ParameterServer/CreateVariables", request, rpc::kDiskDeadline,
                  std::move(done));
  }
  void Grant(const GrantRequest& request, Done<GrantReply> done) override {
    channel_.Call("/lockstep.ParameterServer/Grant", request, rpc::kParkedDeadline,
                  std::move(done));
  }
  void CommitStep(const CommitStepRequest& request, Done<CommitStepReply> done) override {
    channel_.Call("/lockstep.ParameterServer/CommitStep", request, rpc::kControlDeadline,
                  std::move(done));
  }
  void Save(const SaveRequest& request, Done<SaveReply> done) override {
    channel_.Call("/lockstep.ParameterServer/Save", request, rpc::kDiskDeadline, std::move(done));
  }
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                       Done<ReleaseSnapshotReply> done) override {
    channel_.Call("/lockstep.ParameterServer/ReleaseSnapshot", request, rpc::kControlDeadline,
                  std::move(done));
  }
  void Finish(const FinishRequest& request, Done<FinishReply> done) override {
    channel_.Call("/lockstep.ParameterServer/Finish", request, rpc::kControlDeadline,
                  std::move(done));
  }

 private:
  RawChannel channel_;
};

}  // namespace

std::unique_ptr<PsControl> MakePsControl(const ClientOptions& options) {
  return std::make_unique<GrpcPsControl>(options);
}

}  // namespace lockstep
