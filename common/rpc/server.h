// The one way in which a Lockstep process serves gRPC: bind check, limits, keepalive, health,
// reflection and orderly shutdown are the same everywhere, and everything comes on event queues.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/monotonic_wait.h"

namespace lockstep {

namespace rpc {
class Credentials;
class EventQueue;
class Service;
}  // namespace rpc

struct ServerOptions {
  std::string address;    // "host:port" to listen on; port 0 picks one
  bool insecure = false;  // allow an address that is not loopback
  std::string owner;      // "worker 1": named in errors, compared with the owner of a taken port
  // Null: everybody who reaches the port may call.
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;
  std::vector<rpc::Service*> services;  // not owned; outlive the server
  int queues = 1;                       // each with its thread
  // How long a host name that does not resolve is asked for again (--start_timeout), and what ends
  // that; may be null.
  absl::Duration name_patience = absl::ZeroDuration();
  const MonotonicNotification* stop = nullptr;
};

// Thread-safe after Start.
class Server {
 public:
  // INVALID_ARGUMENT (exit 78): the address is not loopback and not --insecure. UNAVAILABLE (exit
  // 138): the name does not resolve, or the port is in use, naming the holder when it tells;
  // FAILED_PRECONDITION (exit 78): the holder is this very task (same role and index). CANCELLED:
  // `stop` was notified.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  virtual ~Server() = default;

  virtual int port() const = 0;
  // For the calls that this process makes. It lives as long as the server.
  virtual rpc::EventQueue* queue() = 0;
  // Health: "" is live from the start; "ready" is set here.
  virtual void SetReady(bool ready) = 0;
  // Tells those who watch its health, refuses new calls, gives calls in flight `grace`, then
  // cancels them; returns when all are done. Refusals that are held are sent first. Without grace
  // they may be cancelled before they are written.
  // Done on destruction, without grace.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace lockstep
