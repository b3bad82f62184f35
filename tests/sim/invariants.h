// Invariants checks what holds at every moment of a simulated job, whatever the network and the
// processes do:
//
// - values: each value that is given out is the one that the accepted gradients make. No step
//   closes with fewer gradients than it needs; none is accepted after that, or staler than allowed.
// - counted: where a replica has one token, no server judges a gradient of a process twice for one
//   step.
// - token: no process has a token twice, one older than its last, or one of a step to come.
// - step: no shard goes back within an epoch.
// - commit: the global step moves last. No shard is behind it, or more than one step
//   ahead; two where it takes no gradients.
// - term: at a ps process, a term has one chief.
// - view: no ps process goes back to an older term or epoch, or to an older view of its term.
// - checkpoint: one that has a manifest has every file that it names, whole. Checked when shards
//   are told to release what was kept for it.
// - epoch: no gradient of another epoch is accepted; an epoch begins with values that one before it
//   had.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sim/copy_invariants.h"
#include "tests/sim/expected_values.h"
#include "tests/sim/history.h"
#include "tests/sim/replica_history.h"
#include "tests/sim/sim_options.h"
#include "tests/sim/sim_ps_server.h"

namespace lockstep::sim {

class Invariants {
 public:
  // The objects pointed to outlive this.
  Invariants(const SimOptions* options, const History* history);

  // Returns the number of values given out before all gradients that make them had been judged.
  uint64_t shown_early() const { return shown_early_; }

  // Checks what has changed since the last call. Returns "INVARIANT: what is broken", nothing when
  // all hold. `serving`: by shard, the server that serves it. `servers`: all that ever were.
  // `means`: has the means that copies have taken.
  std::optional<std::string> Check(const std::vector<SimPsServer*>& serving,
                                   const std::vector<SimPsServer*>& servers,
                                   const CopyInvariants& means);

 private:
  void NoteCommits(const std::vector<SimPsServer*>& servers);
  // Each adds the events that it checks to the known ones. Returns what is broken.
  std::optional<std::string> CheckGradients(const std::vector<ps::ShardState>& now);
  std::optional<std::string> CheckTokens();
  // Finds the copies that now serve a shard in place of another server. Gradients that they lack
  // are to be pushed again.
  std::optional<std::string> CheckTakeOvers(const std::vector<ps::ShardState>& now,
                                            const CopyInvariants& means);
  std::optional<std::string> CheckViews();
  std::optional<std::string> CheckSteps(const std::vector<ps::ShardState>& now) const;
  std::optional<std::string> CheckCommit(const std::vector<ps::ShardState>& now) const;
  std::optional<std::string> CheckValues(const std::vector<ps::ShardState>& now);
  std::optional<std::string> CheckCheckpoints();
  // Fills in the gradient's share of its step.
  std::optional<std::string> FindShare(Judged* gradient) const;
  // Compares those of `early_` that can be compared now.
  std::optional<std::string> CompareEarly(const std::vector<ps::ShardState>& now);
  // Makes the expected values of the epoch if a shard has begun it; null: none has.
  ExpectedValues* FindExpected(Epoch epoch, const std::vector<ps::ShardState>& now);

  const SimOptions* const options_;
  const History* const history_;
  std::map<Epoch, ExpectedValues> expected_;
  std::vector<ps::ShardState> last_;               // by shard
  std::vector<Incarnation> server_, last_server_;  // by shard: current and previous server
  std::pair<Epoch, GlobalStep> committed_;         // the highest global step of the epoch
  // The numbers of history entries that are known.
  size_t judged_ = 0, tokens_ = 0, pulled_ = 0, views_ = 0, releases_ = 0;
  uint64_t shown_early_ = 0;
  std::vector<Pulled> early_;  // ranges of variables whose gradients are not all judged
  // By server and variable: the processes that have pushed it, with the step.
  std::set<std::tuple<Incarnation, uint32_t, Incarnation, GlobalStep>> counted_;
  std::map<Incarnation, HandedOut> newest_token_;
  std::map<Incarnation, AcceptedView> newest_view_;  // by ps process
  ReplicaHistory replica_views_;
  std::map<std::pair<Incarnation, Term>, Incarnation> chief_of_term_;  // by ps process
};

}  // namespace lockstep::sim
