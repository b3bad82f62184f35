// What a process says of a peer that it hears nothing of: who that is, for how long and why, from
// time to time, and that it is back. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace lockstep {

// Thread-compatible. Times are of one monotonic clock.
class SilenceWatch {
 public:
  struct Options {
    std::string peer;           // as the lines name it: "the chief"
    absl::Duration told_after;  // a shorter silence is not told
    absl::Duration period;      // how often CheckSilence is called
    std::string reason;         // of a silence without failures: "it does not answer"
  };

  // The peer counts as heard of now.
  SilenceWatch(Options options, absl::Duration now);

  void SetName(std::string peer) { options_.peer = std::move(peer); }
  // A sign of life. The line to log where the last one said that there was no contact with this
  // peer. One of another name is not back.
  std::optional<std::string> OnHeard(absl::Duration now);
  absl::Duration Silence(absl::Duration now) const { return now - heard_at_; }
  // A call to the peer has failed: why it is silent, if it stays so.
  void OnFailure(std::string reason) { failure_ = std::move(reason); }
  // The line to log, if it is time for one. The time by which a call comes late does not count:
  // this process stood still, and heard of nobody.
  std::optional<std::string> CheckSilence(absl::Duration now);

 private:
  Options options_;
  absl::Duration heard_at_;
  absl::Duration looked_at_;                  // or heard of
  std::string failure_;                       // the last since then
  std::optional<absl::Duration> told_since_;  // the silence that has been logged began then
  std::string told_peer_;                     // whose it was
  absl::Duration next_report_ = -absl::InfiniteDuration();
};

}  // namespace lockstep
