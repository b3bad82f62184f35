// CommandObserver decides for a standby chief, from the step shard's answers, whether it waits,
// takes command, or ends. Pure: times are arguments, of one monotonic clock.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/retry_policy.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

struct ObserverOptions {
  std::vector<std::string> chiefs;  // addresses by index, for messages
  std::string step_shard;           // "ps 0 (host:port)"
  // The longest wait without a chief, or for a step shard that cannot be reached.
  absl::Duration patience = absl::Seconds(120);
  // Takes command if no chief has had it yet.
  bool begins = false;
  // A checkpoint of the last step exists: without a step shard nothing is left to do. It says
  // nothing once a chief is known to command, which may have begun another run.
  bool is_done = false;
};

class CommandObserver {
 public:
  struct Decision {
    enum Action { kAsk, kTakeCommand, kEnd };
    Action action = kAsk;
    absl::Duration pause = absl::ZeroDuration();  // before it asks
    std::string why;                              // kTakeCommand
    absl::Status end;                             // kEnd; OK: the job is done
  };

  CommandObserver(ObserverOptions options, absl::Duration now);

  // Replaces the names in the options, which are those at the start.
  void SetNames(std::vector<std::string> chiefs, std::string step_shard);

  Decision OnStatus(const CommandStatus& status, absl::Duration now);
  Decision OnFailure(const absl::Status& failure, absl::Duration now);
  // For use while a call is parked: kEnd if no chief has commanded for too long.
  Decision OnTick(absl::Duration now) const;
  // `is_done` does not hold, or no longer.
  void ForgetEnd() { options_.is_done = false; }
  // A shard has a view of this term, another chief's or this one's.
  void NoteTerm(uint64_t term);

  // The term of the known commander, for the next call. With `begins` and no known commander it is
  // a term of no chief, so that the call does not wait for the first chief.
  uint64_t watched_term() const;
  // The highest term that this chief has heard of. It takes only the next one.
  uint64_t highest_term() const { return highest_term_; }
  // "chief 0 (host:port)"; empty: none is known.
  std::string Commander() const;
  // The reason why no commander is known; empty if one is known.
  std::string WaitingFor() const;

 private:
  // Also true if the step shard does not know the commander's term yet.
  bool is_commander_known() const { return known_.state() != CommandStatus::NONE; }
  std::string NameOf(uint32_t chief) const;
  Decision OnNone(absl::Duration now);
  // The step shard refuses this chief, which has stood by there. The shard may have been started
  // again with a cluster spec that this chief has not read yet.
  Decision OnRefused(const absl::Status& refusal, absl::Duration now);
  Decision OnExpired(const CommandStatus& status, absl::Duration now);
  Decision OnJobOver(const CommandStatus& status) const;

  ObserverOptions options_;
  const absl::Duration start_;
  CommandStatus known_;  // the last one with a chief
  bool was_held_ = false;
  uint64_t highest_term_ = 0;
  uint64_t left_to_others_ = 0;               // expired term left to older standbys first
  std::optional<absl::Duration> none_since_;  // the step shard has named no chief since
  std::optional<absl::Duration> refused_since_;
  RetryPolicy retry_;
  std::string problem_;  // with the step shard
};

}  // namespace lockstep::chief
