// Accepts connections. gRPC's own listener stops for good when descriptors run out once; this one
// waits until there are some again, and keeps a few of them for the files of the process.
#pragma once

#include <functional>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::rpc {

// How many descriptors may be open when a connection is accepted. Raises the soft limit of the
// process to its hard limit.
int MaxDescriptorsForConnections();

// Has a thread of its own. All methods may be called from any other thread.
class Acceptor {
 public:
  struct Options {
    // Descriptors are numbered from the lowest free one, so a connection whose number is below this
    // is one of fewer than this many open descriptors.
    int max_descriptors = 0;
    // Owns the descriptor of a connection from then on. It is not blocking. Called on the
    // acceptor's thread.
    std::function<void(int connection)> serve;
    // Called every `period` on the acceptor's thread, with whether connections wait for
    // descriptors. May be null.
    absl::Duration period;
    std::function<void(bool is_full)> look;
  };

  Acceptor(std::vector<FileDescriptor> sockets, Options options);
  ~Acceptor() { Stop(); }

  // Closes the listening sockets. No connection is accepted after it returns.
  void Stop();

 private:
  void Run();
  // Accepts the connections that wait at `socket`. False: there is no descriptor for the next one.
  bool AcceptFrom(int socket);
  // Returns when there is a descriptor for the connection that waits, or when stopped.
  void WaitForDescriptors();
  bool Stopped(int timeout_milliseconds) const;
  void LookIfTime(bool is_full);

  std::vector<FileDescriptor> sockets_;
  const Options options_;
  const FileDescriptor stop_;  // an eventfd
  FileDescriptor waiting_;     // a connection that was accepted beyond the limit
  absl::Duration next_look_ = -absl::InfiniteDuration();  // monotonic, as the next
  absl::Duration next_log_ = -absl::InfiniteDuration();
  std::thread thread_;
};

}  // namespace lockstep::rpc
