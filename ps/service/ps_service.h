// ParameterServer: protobuf to the shard and back. Calls are handled on the server's queues; what
// blocks on a disk goes to a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/ids.h"
#include "common/config/known_cluster_specs.h"
#include "common/fs/path_roots.h"
#include "common/rpc/unary_method.h"
#include "common/transport/grpc_shm/shared_memory_references.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"
#include "proto/ps.grpc.pb.h"
#include "ps/service/caller_contacts.h"
#include "ps/service/command_watch.h"
#include "ps/service/job_finisher.h"
#include "ps/service/serial_thread.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// What a ps process is, and what it wants to know of. The callbacks must not block.
struct PsIdentity {
  uint32_t task_index = 0;
  std::shared_ptr<KnownClusterSpecs> clusters;  // its own, and what chiefs of its job have told
  Incarnation incarnation;
  PathRoots checkpoint_roots = {};  // for Save and restore_from
};
struct PsEvents {
  std::function<void()> called_by_chief;  // on every such call but GetView and WatchCommand
  std::function<void()> asked_by_chief;   // on every GetView: a chief is there
  // The chief waits for something that takes long: it begins, it is over.
  std::function<void()> work_begins;
  std::function<void()> work_ends;
  std::function<void()> created;  // the variables exist
  // Opens the port of the copy that this process keeps of another shard; null: it keeps none.
  std::function<absl::StatusOr<uint32_t>()> open_copy_port;
  std::function<void(const JobEnd&)> finished;  // the job is over
};

class PsService final : public rpc::Service {
 public:
  // `shard`, `memory`, which may be null, `watch` and `contacts` outlive the service.
  PsService(Shard* shard, SharedMemoryRegistry* memory, CommandWatch* watch,
            CallerContacts* contacts, PsIdentity identity, PsEvents events);

  rpc::RawMethods* methods() override { return &methods_; }
  void Serve(const rpc::ServingQueue& queue) override;
  // As PsServer.
  void Leave() { finisher_.Leave(); }

 private:
  template <typename Request, typename Reply>
  using Handler = void (PsService::*)(const Request&, Callback<Reply>);

  void ServeTensors(const rpc::ServingQueue& queue);
  template <typename Request, typename Reply>
  void ServeOne(const rpc::ServingQueue& queue, Handler<Request, Reply> handler);

  // Lets `work` wait for the disk, on the thread for that, and tells its result. UNAVAILABLE: too
  // many such calls wait.
  template <typename Result>
  void DoOnDisk(std::function<absl::StatusOr<Result>()> work, Callback<Result> done);

  void GetView(const GetViewRequest& request, Callback<SetViewReply> respond);
  void SetView(const SetViewRequest& request, Callback<SetViewReply> respond);
  void CreateVariables(const CreateVariablesRequest& request,
                       Callback<CreateVariablesReply> respond);
  void Grant(const GrantRequest& request, Callback<GrantReply> respond);
  void CommitStep(const CommitStepRequest& request, Callback<CommitStepReply> respond);
  void Save(const SaveRequest& request, Callback<SaveReply> respond);
  void SaveStored(const SaveRequest& request, Callback<SaveReply> respond);
  void ReleaseSnapshot(const ReleaseSnapshotRequest& request,
                       Callback<ReleaseSnapshotReply> respond);
  void Finish(const FinishRequest& request, Callback<FinishReply> respond);
  void RenewLease(const RenewLeaseRequest& request, Callback<RenewLeaseReply> respond);
  void WatchCommand(const WatchCommandRequest& request, Callback<WatchCommandReply> respond);
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> respond);
  void Ping(const PingRequest& request, Callback<PingReply> respond);
  void ServerPing(const ServerPingRequest& request, Callback<PingReply> respond);
  void AttachMemory(const AttachMemoryRequest& request, Callback<AttachMemoryReply> respond);

  // OK when the chief is of this version and of this cluster.
  template <typename Request>
  absl::Status CheckChief(const Request& request) const;
  // As CheckChief, and it means this process.
  absl::Status CheckAddressee(const SetViewRequest& request) const;
  absl::Status CheckPath(const std::string& path) const;
  void LogOnce(const std::string& refusal);

  Shard* const shard_;
  SharedMemoryRegistry* const memory_;
  CommandWatch* const watch_;
  CallerContacts* const contacts_;
  JobFinisher finisher_;
  const SharedMemoryReferences references_;
  const PsIdentity identity_;
  const PsEvents events_;
  rpc::RawMethods methods_{ParameterServer::service_full_name()};
  std::atomic<bool> has_checksums_ = false;  // the job, for every chief that it had
  absl::Mutex mutex_;
  std::string last_refusal_ ABSL_GUARDED_BY(mutex_);
  // Of the last CreateVariables.
  std::string job_text_ ABSL_GUARDED_BY(mutex_);
  std::string model_text_ ABSL_GUARDED_BY(mutex_);
  SerialThread disk_;
};

}  // namespace lockstep::ps
