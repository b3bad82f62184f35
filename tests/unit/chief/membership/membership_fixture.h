// Two workers, with times in seconds.
#pragma once

#include <string>
#include <vector>

#include "chief/membership/membership.h"

namespace lockstep::chief::membership_test {

inline constexpr absl::Duration kLease = absl::Seconds(5);
inline const WorkerIndex kW0(0), kW1(1);
inline const Incarnation kFirst(11), kSecond(22), kThird(33);

inline absl::Duration At(double seconds) { return absl::Seconds(seconds); }

struct Fixture {
  Membership membership{{"a:1", "b:2"}, kLease};

  absl::StatusOr<Admission> Register(WorkerIndex worker, Incarnation incarnation, double now) {
    return membership.Register(worker, incarnation, "host", 42, At(now));
  }
  absl::Status Beat(WorkerIndex worker, Incarnation incarnation, double now) {
    return membership.Heartbeat(worker, incarnation, {}, At(now));
  }
  // It shows that the process lived just before.
  absl::Status BeatAlive(WorkerIndex worker, Incarnation incarnation, double now) {
    membership.NoteAlive({worker, incarnation}, At(now - 0.1));
    return Beat(worker, incarnation, now);
  }
  // Time passes with Expire called often, as it is.
  std::vector<WorkerIndex> Pass(double from, double to) {
    std::vector<WorkerIndex> lost;
    for (double now = from; now <= to; now += 0.5) {
      for (WorkerIndex worker : membership.Expire(At(now))) lost.push_back(worker);
    }
    return lost;
  }
};

}  // namespace lockstep::chief::membership_test
