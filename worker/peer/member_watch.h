// MemberWatch finds members of a group that have answered no call for too long. Has no clock and no
// thread of its own.
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
  // A call to the member failed. Check names the error if the member stays silent.
  void OnError(int position, const absl::Status& error);

  // Fails if a member has been silent for the patience or longer; the error names the most silent
  // one. UNAVAILABLE if it cannot be reached, otherwise DEADLINE_EXCEEDED.
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
