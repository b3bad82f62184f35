// What a chief that stands by makes of the step shard's answers: whether to wait on, to take
// command, or to end. Pure: times are arguments, of one monotonic clock.
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
  // With no chief, or with a step shard that cannot be reached.
  absl::Duration patience = absl::Seconds(120);
  // Takes command where no chief has had it yet.
  bool begins = false;
  // A checkpoint of the last step: without a step shard there is nothing left to do.
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

  // As in the options, which are of the start.
  void SetNames(std::vector<std::string> chiefs, std::string step_shard);

  Decision OnStatus(const CommandStatus& status, absl::Duration now);
  Decision OnFailure(const absl::Status& failure, absl::Duration now);
  // While a call is parked: kEnd when no chief has come for too long.
  Decision OnTick(absl::Duration now) const;
  // A shard has a view of this term, another chief's or this one's.
  void NoteTerm(uint64_t term);

  // To name in the next call: of the chief that is known to command. One that begins where there is
  // none does not wait for the first one.
  uint64_t watched_term() const;
  // The highest that this chief has heard of. It takes the next one, and only that.
  uint64_t highest_term() const { return highest_term_; }
  // "chief 0 (host:port)"; empty: none is known.
  std::string Commander() const;
  // Why nobody is known to command; empty when somebody is.
  std::string WaitingFor() const;

 private:
  // Also of one whose term the step shard does not know yet.
  bool is_commander_known() const { return known_.state() != CommandStatus::NONE; }
  std::string NameOf(uint32_t chief) const;
  Decision OnNone(absl::Duration now);
  // The step shard refuses this chief, which has stood by there: it may have been started again
  // with a cluster spec that this chief has not read yet.
  Decision OnRefused(const absl::Status& refusal, absl::Duration now);
  Decision OnExpired(const CommandStatus& status, absl::Duration now);
  Decision OnJobOver(const CommandStatus& status) const;

  ObserverOptions options_;
  const absl::Duration start_;
  CommandStatus known_;  // the last one with a chief
  bool was_held_ = false;
  uint64_t highest_term_ = 0;
  uint64_t left_to_others_ = 0;               // term whose end others were left to follow first
  std::optional<absl::Duration> none_since_;  // since when the step shard names no chief
  std::optional<absl::Duration> refused_since_;
  RetryPolicy retry_;
  std::string problem_;  // with the step shard
};

}  // namespace lockstep::chief
