// CopyInvariants checks what holds at every moment of a job whose shards have copies:
//
// - copy: a shard shows nothing (a closed step, a version of a variable) before its copy has it.
// - served: a version of a variable has one value in an epoch, whichever server serves the shard.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/sim/history.h"
#include "tests/sim/sim_ps_server.h"

namespace lockstep::sim {

class CopyInvariants {
 public:
  // `history` outlives this.
  explicit CopyInvariants(const History* history) : history_(history) {}

  // Checks what has changed since the last call. Returns "INVARIANT: what is broken", nothing when
  // all hold. `servers`: all that ever were.
  std::optional<std::string> Check(const std::vector<SimPsServer*>& servers);
  // Returns the newest step of the epoch whose mean of the variable this copy has; nullopt: none.
  std::optional<GlobalStep> LastMean(Incarnation copy, Epoch epoch, uint32_t variable) const;

 private:
  void TakeHistory();
  std::optional<std::string> CheckSteps(const std::vector<SimPsServer*>& servers) const;
  std::optional<std::string> CheckShown(const Pulled& pulled,
                                        const std::vector<SimPsServer*>& servers) const;
  std::optional<std::string> CheckValues(const Pulled& pulled);
  // Returns the copy of the server `of`, as its newest view says; null: none has begun.
  const SimPsServer* FindCopy(Incarnation of, const std::vector<SimPsServer*>& servers) const;

  const History* const history_;
  // The numbers of history entries that are known.
  size_t views_ = 0, means_ = 0, pulled_ = 0;
  std::map<Incarnation, std::string> copy_addresses_;  // by server
  std::map<std::tuple<Incarnation, Epoch, uint32_t>, GlobalStep> last_means_;
  // By epoch, variable and version: the elements that were given out.
  std::map<std::tuple<Epoch, uint32_t, GlobalStep>, std::map<size_t, float>> values_;
};

}  // namespace lockstep::sim
