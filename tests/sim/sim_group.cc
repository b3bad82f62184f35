#include "tests/sim/sim_group.h"

#include <utility>

namespace lockstep::sim {

SimMember* SimMembers::Add(uint64_t incarnation, const Node& node) {
  std::unique_ptr<SimMember>& member = members_[incarnation];
  member = std::make_unique<SimMember>();
  member->seen.node = node;
  return member.get();
}

void SimMembers::Kill(SimMember* member) {
  member->seen.is_gone = true;
  member->connections.clear();
  for (const auto& [incarnation, other] : members_) {
    for (SimPeerConnection* const connection : other->connections) {
      if (connection->to() == &member->seen) connection->Break();
    }
  }
}

std::unique_ptr<worker::MemberConnection> SimMembers::Connect(SimMember* from, uint64_t to) {
  auto connection = std::make_unique<SimPeerConnection>(events_, network_, random_,
                                                        /*by_reference=*/false, &from->seen,
                                                        &members_.at(to)->seen);
  from->connections.push_back(connection.get());
  return connection;
}

void SimGroupSource::Next(Callback<worker::ReducerOfGroup> done) {
  source_.Next(
      [this, done = std::move(done)](absl::StatusOr<worker::ReducerOfGroup> group) mutable {
        if (group.ok()) reducers_.push_back(group->reducer);
        done(std::move(group));
      });
}

}  // namespace lockstep::sim
