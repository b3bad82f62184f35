// Workers: each computes the gradient of its token's step from the values of that version, pushes
// it to the leader, and keeps it until the next token. A worker may call either member at any time,
// so the search includes every outdated belief about which one leads.
#include "tests/model/transitions.h"

namespace lockstep::model {
namespace {

class WorkerEvents {
 public:
  WorkerEvents(const Configuration& configuration, const State& state, int id, Transitions* out)
      : configuration_(configuration),
        state_(state),
        id_(id),
        worker_(state.workers[id]),
        bit_(static_cast<GradientSet>(1 << id)),
        out_(*out) {}

  void Append() {
    if (worker_.step == configuration_.steps) return;
    for (int name = 0; name < 2; ++name) {
      const Member& member = state_.members[name];
      AppendToken(name, member);
      if (!member.alive() || !member.serves) continue;
      AppendDeath(name, member);
      AppendPush(name, member);
      AppendPull(name, member);
    }
    AppendPushToPlain();
  }

 private:
  State& Add(EventKind kind, int name) {
    out_.push_back({{kind, name, id_}, state_});
    return out_.back().next;
  }

  // Its successor starts at the first step that the member has not committed, without a gradient.
  void AppendDeath(int name, const Member& member) {
    if (!configuration_.workers_die) return;
    Add(EventKind::kWorkerDies, name).workers[id_] = {.step = member.committed};
  }

  // A token that a member has answered arrives even after the member's death.
  void AppendToken(int name, const Member& member) {
    if (member.committed <= worker_.step) return;
    State& next = Add(EventKind::kToken, name);
    Worker& worker = next.workers[id_];
    worker = {member.committed, Phase::kWaitsForValues, 0};
    const bool prefetched = worker_.prefetched != 0 && worker.step == worker_.step + 1;
    if (!prefetched || worker.step == configuration_.steps || !PlainHas(worker.step)) return;
    worker.phase = Phase::kHasGradient;
    if (worker_.prefetched != SetOfStep(state_.settled, worker_.step)) {
      out_.back().broken = Law::kOneValuePerVersion;
    }
  }

  void AppendPush(int name, const Member& member) {
    if (worker_.phase != Phase::kHasGradient || member.version != worker_.step) return;
    if (member.has_taken()) return;  // it is stale
    // A promoted copy knows from the delta which gradients are in the sum that it holds.
    const bool counted_before = member.held & bit_;
    const bool forgotten =
        counted_before && (member.delta & bit_) && !configuration_.rules.ledger_travels;
    if (counted_before && !forgotten) return;  // ACCEPTED, as before
    State& next = Add(EventKind::kPush, name);
    next.members[name].held |= bit_;
    if (!configuration_.rules.keep_gradient_until_token) {
      next.workers[id_].phase = Phase::kDroppedGradient;
    }
    if (forgotten) out_.back().broken = Law::kSummedOnce;
  }

  void AppendPushToPlain() {
    const PlainShard& plain = state_.plain;
    if (!configuration_.plain_shard || worker_.phase != Phase::kHasGradient) return;
    if (plain.version != worker_.step || (plain.held & bit_)) return;
    Add(EventKind::kPushToPlain, 0).plain.held |= bit_;
  }

  // Fetches the values of the token's step, or early those of the next one.
  void AppendPull(int name, const Member& member) {
    const bool waits = worker_.phase == Phase::kWaitsForValues;
    if (waits) {
      const bool keeps_last = !member.lacks_last_version && member.committed <= worker_.step;
      const bool readable =
          member.version == worker_.step || (member.version > worker_.step && keeps_last);
      if (!readable || !PlainHas(worker_.step)) return;
    } else {
      const bool wanted = worker_.prefetched == 0 && worker_.step + 1 < configuration_.steps;
      if (!wanted || member.version <= worker_.step) return;
    }
    Worker& worker = Add(EventKind::kPull, name).workers[id_];
    if (waits) {
      worker.phase = Phase::kHasGradient;
    } else {
      worker.prefetched = SetOfStep(member.history, worker_.step);
    }
    out_.back().broken = LawOfValues(state_, member, worker_.step);
  }

  bool PlainHas(int version) const {
    return !configuration_.plain_shard || state_.plain.version >= version;
  }

  const Configuration& configuration_;
  const State& state_;
  const int id_;
  const Worker& worker_;
  const GradientSet bit_;
  Transitions& out_;
};

}  // namespace

void AppendWorkers(const Configuration& configuration, const State& state, Transitions* out) {
  for (int id = 0; id < kWorkers; ++id) WorkerEvents(configuration, state, id, out).Append();
}

}  // namespace lockstep::model
