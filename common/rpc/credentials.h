// What a process shows of itself in its calls, and how it checks its callers. Made once at the
// start; without it a process serves everybody who reaches its port.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/caller.h"

namespace grpc {
class Channel;
class ChannelCredentials;
class ClientContext;
class ServerCredentials;
}  // namespace grpc

namespace lockstep::rpc {

class CallerCheck;

// Thread-safe. Shared by what uses it.
class Credentials {
 public:
  virtual ~Credentials() = default;

  // For a server of this process, which asks callers() about each call; null: it serves nobody.
  virtual std::shared_ptr<grpc::ServerCredentials> ForServer() const = 0;
  virtual const CallerCheck* callers() const = 0;
  // For a connection to the task at "host:port".
  virtual std::shared_ptr<grpc::ChannelCredentials> ForChannel(
      const std::string& address) const = 0;
  // Adds what proves this process's role to a call.
  virtual void AddTo(grpc::ClientContext* context) const = 0;
  // Whether connections are encrypted: they may then leave the machine.
  virtual bool encrypts() const = 0;
  // INVALID_ARGUMENT: `address` is on another machine, and the token would go there unencrypted.
  virtual absl::Status CheckAddress(const std::string& address) const = 0;
};

// With the job's token in `token_file`. Errors of security::ReadJobToken.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeTokenCredentials(
    const std::string& token_file, const security::Caller& self);

// Of a tool that only calls, in `role` where the file holds the job's token. Errors of
// security::ReadCredential.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeToolCredentials(
    const std::string& token_file, security::CallerRole role = security::CallerRole::kReader);

// A channel of common/rpc/channel.h to the task at `address`; unencrypted where there are no
// credentials.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Credentials* credentials = nullptr);

}  // namespace lockstep::rpc
