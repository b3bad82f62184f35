// What happened at the ps of a simulated run, in the order in which it happened there: the truth,
// whatever the network did to the answers.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

// One variable of one gradient that was taken or dropped; repeated calls appear once.
struct Judged {
  uint32_t variable = 0;
  WorkerIndex worker;
  Incarnation incarnation;
  PushSeq push_seq;
  GlobalStep stamp;
  bool accepted = false;
  Epoch epoch;  // that its worker is in
};

struct HandedOut {
  WorkerIndex worker;
  Incarnation incarnation;
  GlobalStep step;
};

// Values of a variable that a ps sent, or that a tower was given.
struct Pulled {
  GlobalStep version;
  uint32_t variable = 0;
  size_t first = 0;  // element
  std::vector<float> values;
  Epoch epoch;  // that it was asked in
};

struct PsProcess {
  uint32_t shard = 0;
  Incarnation incarnation;
};

// A view that a ps has accepted.
struct AcceptedView {
  PsProcess ps;
  Term term;
  Incarnation chief;
  uint64_t number = 0;
  Epoch epoch;
};

struct History {
  std::vector<Judged> judged;
  std::vector<HandedOut> tokens;  // those that say "done" are left out
  std::vector<Pulled> pulled;
  std::vector<AcceptedView> views;
  size_t releases = 0;  // of kept versions

  // Tokens of that step.
  int TokensOf(GlobalStep step) const;
  // Gradients of the variable with that stamp: all, or those that were accepted.
  int Pushes(uint32_t variable, GlobalStep stamp) const;
  int Accepted(uint32_t variable, GlobalStep stamp) const;
  int Accepted(uint32_t variable) const;  // with any stamp
};

// Each is `ps`, with everything written down. What is pointed to outlives it.
std::unique_ptr<PsControl> MakeRecordedControl(PsControl* ps, const PsProcess& process,
                                               History* history);
std::unique_ptr<PsData> MakeRecorded(PsData* ps, History* history);

}  // namespace lockstep::sim
