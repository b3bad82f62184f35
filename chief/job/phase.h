// A job is in one phase at a time: starting, training, completing, ending.
//
// Phases live on the executor's thread. One that was left is kept until the job is destroyed,
// because answers to its calls may still come.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "chief/job/job_facts.h"

namespace lockstep::chief {

enum class JobEvent {
  kMembersConfirmed,  // every shard has another set of members
  kMilestoneEnded,    // results of an evaluation have come, or a version is saved
  kSaveFailed,        // the last one is repeated
  kEndKnown,          // one more worker knows that the job is over
};

class Phase {
 public:
  virtual ~Phase() = default;
  // Once, when the phase is entered. Start, Tick and OnEvent may enter the next phase.
  virtual void Start() = 0;
  // Several times a second.
  virtual void Tick() = 0;
  virtual void OnEvent(JobEvent event) = 0;
  // The phase was left: it makes no further calls and no further decisions.
  virtual void Stop() = 0;
  // Adds what this phase knows. Called for every phase that was entered, in order, so that a later
  // one corrects an earlier one.
  virtual void Describe(JobFacts* facts) const = 0;
};

// Who is told that the job is over. A ps that is not told keeps the model for the next chief.
enum class Told { kNobody, kWorkers, kEverybody };

struct JobEnd {
  absl::Status outcome;
  Told told = Told::kEverybody;
  bool save_first = false;  // the last committed step, where that is possible
};

// What a phase asks of the job.
class PhaseControl {
 public:
  virtual ~PhaseControl() = default;
  virtual void Enter(std::unique_ptr<Phase> next) = 0;
  // The first end counts. While it saves, one without a save replaces it, and one that tells
  // everybody replaces one that tells nobody.
  virtual void End(JobEnd end) = 0;
  // Tells the current phase.
  virtual void Notify(JobEvent event) = 0;
  virtual JobFacts Describe() const = 0;
};

}  // namespace lockstep::chief
