// ConnectionPolicy selects a server's connections to close: they take more than a task ever does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace lockstep::rpc {

// Counters of one connection, as gRPC keeps them. A stream is a call, and is unfinished until its
// first message from the client has come whole. Only calls of gRPC's own services have more
// messages; ExtraMessages counts these.
struct ConnectionCounters {
  std::string peer;       // its address and port, which the next connection may have again
  int64_t id = 0;         // no other connection has or had it
  int64_t started = 0;    // streams
  int64_t succeeded = 0;  // of these: answered
  int64_t failed = 0;     // of these: cancelled or cut off
  int64_t messages = 0;   // that have come whole
  int64_t extra = 0;      // of these: beyond the first one of their call, at most
};

struct ClosedConnection {
  std::string peer;
  std::string reason;  // for the log
};

// The resources that the process is short of.
struct Shortage {
  bool descriptors = false;  // new connections wait, so idle ones go, too
  bool memory = false;       // only few unfinished calls may stay
};

// Has no clock of its own. Thread-compatible.
class ConnectionPolicy {
 public:
  // From now on, up to `calls` unfinished calls are few.
  void SetFewUnfinished(int64_t calls) { few_unfinished_ = calls; }
  // Returns the connections to close. Call regularly with the counters of all open ones.
  std::vector<ClosedConnection> Judge(absl::Span<const ConnectionCounters> connections,
                                      const Shortage& shortage, absl::Duration now);

  // Returns whether few calls were unfinished at the last Judge.
  bool is_calm() const { return unfinished_ <= few_unfinished_; }

 private:
  struct History {
    int64_t started = 0;
    int64_t messages = 0;
    int64_t with_message = 0;
    int64_t open = 0;
    // The least number of streams that ended before their message had come.
    int64_t ended_unfinished = 0;
    absl::Duration changed_at;     // a stream was opened or ended, or a message came
    absl::Duration progressed_at;  // a call got its message, or none was unfinished
    absl::Duration certain_at;     // a message came, or perhaps none was unfinished
    bool had_too_many = false;     // unfinished calls, last time
    absl::Duration judged_at;
  };

  // Calls of the connection whose message has not come whole; perhaps a few more.
  struct Unfinished {
    int64_t least;  // if no message is an extra one
    int64_t most;   // if as many are extra as possible
  };
  static Unfinished Update(const ConnectionCounters& counters, absl::Duration now,
                           History* history);

  int64_t few_unfinished_ = 64;
  std::map<int64_t, History> histories_;  // by id
  int64_t unfinished_ = 0;                // in all, the last time
};

}  // namespace lockstep::rpc
