// History records the events at the ps of a simulated run, in their order there. It is the truth,
// whatever the network did to the answers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "common/replicas/replica_view.h"
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
  Epoch epoch;         // that its worker is in
  Incarnation server;  // that judged it
  // Of its step, in a job whose workers come and go. Set once it has been looked up.
  std::optional<ReplicaShare> share = {};
};

struct HandedOut {
  WorkerIndex worker;
  Incarnation incarnation;
  GlobalStep step;
  DequeueSeq dequeue_seq;
  GlobalStep held;     // of the newest token that the worker says it has
  Incarnation server;  // that handed it out
};

// Values of a variable that a ps sent, or that a tower was given.
struct Pulled {
  GlobalStep version;
  uint32_t variable = 0;
  size_t first = 0;  // element
  std::vector<float> values;
  Epoch epoch;              // that it was asked in
  Incarnation server = {};  // of a tower: none
};

// The mean of a step's gradients of a variable, which a copy has taken of its primary.
struct TakenMean {
  Incarnation server;  // the copy
  uint32_t variable = 0;
  GlobalStep step;
  Epoch epoch;
};

// A server of a ps process: that of its own shard, or that of the copy of another one.
struct PsServerId {
  uint32_t shard = 0;
  Incarnation incarnation;  // no other server has it
};

// A view that a server has accepted.
struct AcceptedView {
  PsServerId ps;
  Term term;
  Incarnation chief;
  uint64_t number = 0;
  Epoch epoch;
  bool is_copy = false;
  std::string copy_address;
  ReplicaViews replica_views;
};

struct History {
  std::vector<Judged> judged;
  std::vector<HandedOut> tokens;  // those that say "done" are left out
  std::vector<Pulled> pulled;
  std::vector<TakenMean> means;
  std::vector<AcceptedView> views;
  size_t releases = 0;  // of kept versions

  // Tokens of that step.
  int TokensOf(GlobalStep step) const;
  // Gradients of the variable with that stamp: all, or those that were accepted.
  int Pushes(uint32_t variable, GlobalStep stamp) const;
  int Accepted(uint32_t variable, GlobalStep stamp) const;
  int Accepted(uint32_t variable) const;  // with any stamp
};

// Notes the rows of a table, one by one; without rows, elements from `first` on.
void NotePulled(Pulled pulled, absl::Span<const int64_t> rows, History* history);

// Each returns `ps`, with all its events recorded. The objects pointed to outlive it.
std::unique_ptr<PsControl> MakeRecordedControl(PsControl* ps, const PsServerId& server,
                                               History* history);
std::unique_ptr<PsData> MakeRecorded(PsData* ps, const PsServerId& server, History* history);

}  // namespace lockstep::sim
