// Which members of a group have answered a call lately. Has no clock and no thread of its own.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::worker {

// Thread-compatible.
class MemberWatch {
 public:
  // `names` by position, for errors: "worker 2 (host:port)". A member may be silent for `patience`.
  MemberWatch(std::vector<std::string> names, absl::Duration patience);

  // A reduction begins: silence counts from now on.
  void Start(absl::Duration now);
  void OnAnswered(int position, absl::Duration now);
  // A call to the member failed. Named when it stays silent.
  void OnError(int position, const absl::Status& error);

  // OK, or an error that names the member that has been silent for longest, beyond the patience:
  // UNAVAILABLE if it cannot be reached, otherwise DEADLINE_EXCEEDED.
  absl::Status Check(absl::Duration now) const;

 private:
  struct Member {
    std::string name;
    absl::Duration answered_at;
    absl::Status error;  // the last since then
  };

  const absl::Duration patience_;
  std::vector<Member> members_;
};

}  // namespace lockstep::worker
