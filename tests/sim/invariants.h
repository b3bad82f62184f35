// What holds at every moment of a simulated job, whatever the network and the processes do:
//
// - values: whoever is given a value has what the accepted gradients make. No step closes with
//   fewer gradients than it needs; none is accepted after that, or staler than allowed.
// - counted: where a replica has one token, no gradient of a process is judged twice for one step.
// - token: no process has a token twice, one older than its last, or one of a step to come.
// - step: no shard goes back within an epoch.
// - commit: the global step moves last. No shard is behind it, or more than one step
//   ahead; two where it takes no gradients.
// - term: a term of a shard has one chief.
// - view: no shard goes back to an older term or epoch, or to an older view of its term.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ps/shard/shard.h"
#include "tests/sim/expected_values.h"
#include "tests/sim/history.h"
#include "tests/sim/sim_options.h"

namespace lockstep::sim {

class Invariants {
 public:
  // What is pointed to outlives this.
  Invariants(const SimOptions* options, const History* history);

  // Checks what has changed since the last call. Returns "INVARIANT: what is broken", nothing when
  // all hold. `shards` are those of now, by index.
  std::optional<std::string> Check(const std::vector<const ps::Shard*>& shards);

 private:
  // Each adds what it checks to what is known. Returns what is broken.
  std::optional<std::string> CheckGradients();
  std::optional<std::string> CheckTokens(const std::vector<ps::ShardState>& now);
  std::optional<std::string> CheckViews();
  std::optional<std::string> CheckSteps(const std::vector<ps::ShardState>& now) const;
  std::optional<std::string> CheckCommit(const std::vector<ps::ShardState>& now) const;
  std::optional<std::string> CheckValues(GlobalStep global_step);

  const SimOptions* const options_;
  const History* const history_;
  ExpectedValues expected_;
  std::vector<ps::ShardState> last_;  // by shard
  // So much of the history is known.
  size_t judged_ = 0, tokens_ = 0, pulled_ = 0, views_ = 0;
  std::set<std::tuple<uint32_t, Incarnation, GlobalStep>> counted_;  // by variable
  std::map<Incarnation, GlobalStep> newest_token_;
  std::map<uint32_t, AcceptedView> newest_view_;                    // by shard
  std::map<std::pair<uint32_t, Term>, Incarnation> chief_of_term_;  // by shard
};

}  // namespace lockstep::sim
