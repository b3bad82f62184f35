// A peer that runs as a process of its own and answers one line for each line.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// Not thread-safe.
class PeerProcess {
 public:
  // NOT_FOUND when there is no such program.
  static absl::StatusOr<std::unique_ptr<PeerProcess>> Start(const std::vector<std::string>& argv);
  // Closes the peer's input and waits for its end.
  ~PeerProcess();

  // UNAVAILABLE when the peer has ended instead of answering; what it wrote to standard error has
  // gone to ours.
  absl::StatusOr<std::string> Ask(const std::string& line);
  // The next line of a peer that speaks unasked; errors as above.
  absl::StatusOr<std::string> Read();

 private:
  PeerProcess(std::string name, pid_t pid, FILE* to, FILE* from)
      : name_(std::move(name)), pid_(pid), to_(to), from_(from) {}

  const std::string name_;
  const pid_t pid_;
  FILE* const to_;
  FILE* const from_;
};

}  // namespace lockstep::bench
