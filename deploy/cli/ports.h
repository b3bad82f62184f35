// Ports of this machine for the processes that one launcher starts.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::deploy {

// Different "127.0.0.1:port" that nobody listened on when they were taken, below the range from
// which the kernel gives ports to outgoing connections. No other reservation on this machine (in
// this network namespace, by any user) gets one of them for as long as this object lives. The
// sockets themselves are left to the processes that will bind them. Movable.
class PortReservation {
 public:
  // UNAVAILABLE when there are not `count`.
  static absl::StatusOr<PortReservation> Take(int count);
  // The same, looking from a certain port on. A port outside the range counts from its beginning.
  static absl::StatusOr<PortReservation> TakeFrom(int first_port, int count);

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  PortReservation() = default;

  std::vector<std::string> addresses_;
  std::vector<FileDescriptor> blocks_;  // sockets whose names say which ports are taken
};

}  // namespace lockstep::deploy
