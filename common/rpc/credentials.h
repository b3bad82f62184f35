// Credentials prove a process's role in its calls and check its callers. Made once at the start.
// Without them a process serves every caller that reaches its port.
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

// Thread-safe. Shared by its users.
class Credentials {
 public:
  virtual ~Credentials() = default;

  // For a server of this process, which asks callers() about each call; null: it serves no caller.
  virtual std::shared_ptr<grpc::ServerCredentials> ForServer() const = 0;
  virtual const CallerCheck* callers() const = 0;
  // For a connection to the task at "host:port".
  virtual std::shared_ptr<grpc::ChannelCredentials> ForChannel(
      const std::string& address) const = 0;
  // Adds the proof of this process's role to a call.
  virtual void AddTo(grpc::ClientContext* context) const = 0;
  // Returns whether connections are encrypted: they may then leave the machine.
  virtual bool encrypts() const = 0;
  // INVALID_ARGUMENT: `address` is on another machine, and the token would go there unencrypted.
  virtual absl::Status CheckAddress(const std::string& address) const = 0;
};

// With the job's token in `token_file`. Errors of security::ReadJobToken.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeTokenCredentials(
    const std::string& token_file, const security::Caller& self);

// For a tool that only calls, in `role` if the file holds the job's token. Errors of
// security::ReadCredential.
absl::StatusOr<std::shared_ptr<const Credentials>> MakeToolCredentials(
    const std::string& token_file, security::CallerRole role = security::CallerRole::kReader);

// A channel of common/rpc/channel.h to the task at `address`; unencrypted without credentials.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address,
                                           const Credentials* credentials = nullptr);

}  // namespace lockstep::rpc
