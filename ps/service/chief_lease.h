// ChiefLease is the lease of the chief that commands the job; the step shard keeps it for standbys.
// It does not affect calls: the shard accepts them by job, term and incarnation alone.
//
// Pure: times are arguments, of one monotonic clock. Not thread-safe.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "proto/ps.pb.h"

namespace lockstep::ps {

struct LeaseHolder {
  Term term;  // of the shard
  Incarnation chief;
  uint32_t index = 0;     // in the cluster spec
  absl::Duration length;  // of silence that the lease survives; infinite: it does not end
};

class ChiefLease {
 public:
  // The shard has accepted a call of this chief. A term below the holder's changes nothing. An
  // equal term of another chief changes nothing unless the lease has ended. A chief that has
  // released its lease, or ended the job, gets no lease again.
  void Renew(const LeaseHolder& holder, absl::Duration now);
  // The holder ends its lease and leaves the job to the next chief. Ignored from another chief.
  void Release(Incarnation chief);
  // The job is over; every process ends with this exit code and reason.
  void EndJob(int exit_code, std::string reason);
  // EndJob if this chief is the holder.
  void EndJob(Incarnation chief, int exit_code, std::string reason);

  CommandStatus Status(absl::Duration now) const;
  // Infinite if no lease runs.
  absl::Duration Left(absl::Duration now) const;

 private:
  CommandStatus::State state_ = CommandStatus::NONE;  // never EXPIRED
  LeaseHolder holder_;
  absl::Duration until_;
  int exit_code_ = 0;
  std::string reason_;
};

}  // namespace lockstep::ps
