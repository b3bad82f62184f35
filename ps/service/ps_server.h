// A ps process's server: the shard behind ParameterServer and StatusService.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/monotonic_wait.h"
#include "common/rpc/credentials.h"
#include "common/transport/grpc_shm/shared_memory_registry.h"
#include "ps/service/ps_service.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

struct PsServerOptions {
  std::string address;  // "host:port"; port 0 picks one
  bool insecure = false;
  absl::Duration name_patience = absl::ZeroDuration();  // these two as in ServerOptions
  const MonotonicNotification* stop = nullptr;
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // as in ServerOptions
  SharedMemoryRegistry* memory = nullptr;  // outlives the server; null: no shared memory
  const Clock* clock = Clock::Real();      // of leases and silences; outlives the server
  PsIdentity identity;
  PsEvents events;
};

class PsServer {
 public:
  // `shard` outlives the server. Errors of Server::Start.
  static absl::StatusOr<std::unique_ptr<PsServer>> Start(Shard* shard,
                                                         const PsServerOptions& options);
  virtual ~PsServer() = default;

  virtual int port() const = 0;
  // From now on a chief that asks is told that this ps ends, with UNAVAILABLE. Workers, and the
  // steps that the chief has ordered, are served until Shutdown.
  virtual void Leave() = 0;
  // At the end of the job: tells that for a second to standby chiefs which ask who commands. At
  // once where none has asked before.
  virtual void TellStandbys() = 0;
  // Stops the shard, gives replies `grace` to leave, returns when nothing is in flight. Also done
  // on destruction, without grace.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace lockstep::ps
