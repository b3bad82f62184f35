// Reads the status of one process many times a second, over a connection that it keeps.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/credentials.h"
#include "proto/status.pb.h"

namespace lockstep {

// From one thread.
class StatusReader {
 public:
  // `credentials`: may be null; outlive this.
  explicit StatusReader(std::string address, const rpc::Credentials* credentials = nullptr);
  ~StatusReader();

  // Errors name the process by its address. After one of the connection the next call connects
  // anew: a process that is started again is seen without the back-off of a channel.
  absl::StatusOr<ProcessStatus> Read(absl::Duration timeout);

 private:
  struct Connection;

  const std::string address_;
  const rpc::Credentials* const credentials_;
  std::unique_ptr<Connection> connection_;  // null: none yet, or the last one has failed
};

}  // namespace lockstep
