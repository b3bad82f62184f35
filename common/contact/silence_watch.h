// SilenceWatch makes the log lines about a silent peer. From time to time a line names the peer,
// the length of the silence and the reason. The last line says that the peer is back. Pure.
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
  // A sign of life. Returns the line to log if the last one said that there was no contact with
  // this peer. A peer of another name is not back.
  std::optional<std::string> OnHeard(absl::Duration now);
  absl::Duration Silence(absl::Duration now) const { return now - heard_at_; }
  // A call to the peer has failed. `reason` is logged if the peer stays silent.
  void OnFailure(std::string reason) { failure_ = std::move(reason); }
  // Returns the line to log, if it is time for one. The time by which a call comes late does not
  // count: this process stood still, and heard of nobody.
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
