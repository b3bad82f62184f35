// Closes the connections of a server that take more than a task of a job does: gRPC itself has no
// limit on calls whose message never comes whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/rpc/connection_policy.h"
#include "common/rpc/extra_messages.h"
#include "common/rpc/memory_margin.h"

namespace lockstep::rpc {

// Thread-compatible.
class ConnectionGuard {
 public:
  // `extra` counts those of the connections that are added, and outlives this.
  explicit ConnectionGuard(ExtraMessages* extra) : extra_(extra) {}

  // A connection that gRPC is about to own; its descriptor and its peer are remembered.
  void Add(int connection);
  // To be called about every kPeriod. Reads the counters of all connections when the memory of the
  // process has grown, when new connections wait (`is_full`), and otherwise now and then.
  void CheckConnections(bool is_full, absl::Duration now);

  static constexpr absl::Duration kPeriod = absl::Milliseconds(250);

 private:
  bool IsTime(bool is_full, absl::Duration now);
  // The counters of every connection of the process.
  std::vector<ConnectionCounters> Read();
  // Shuts every connection of this peer down; gRPC closes them.
  void Close(const ClosedConnection& closed);
  void LogClosed(absl::Duration now);

  ExtraMessages* const extra_;
  ConnectionPolicy policy_;
  std::vector<std::string> peers_;                // by descriptor; of connections that may be gone
  int64_t known_memory_ = 0;                      // resident bytes at the last look
  int64_t calm_memory_ = 0;                       // and when few calls were unfinished
  MemoryMargin margin_ = MarginOf(std::nullopt);  // as of then
  absl::Duration next_look_ = -absl::InfiniteDuration();
  absl::Duration next_early_look_ = -absl::InfiniteDuration();
  absl::Duration next_log_ = -absl::InfiniteDuration();
  int unlogged_ = 0;
  std::string last_reason_;
  bool trim_ = false;  // memory of connections that were closed
};

}  // namespace lockstep::rpc
