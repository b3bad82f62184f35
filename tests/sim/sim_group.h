// Connects the workers of a simulated replicated job: real peer services, reducers and sources of
// groups, over a bad network.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_peer_connection.h"
#include "worker/peer/peer_service.h"
#include "worker/service/group_source.h"

namespace lockstep::sim {

// A process of a worker, until its death and after.
struct SimMember {
  worker::PeerService service;
  PeerProcess seen{.service = &service};        // by others
  std::vector<SimPeerConnection*> connections;  // of its reducers, while it lives
};

// Used by one thread, as are its arguments, which outlive it.
class SimMembers {
 public:
  SimMembers(EventQueue* events, Network* network, Random* random)
      : events_(events), network_(network), random_(random) {}

  SimMember* Add(uint64_t incarnation, const Node& node);
  // Its own calls never complete; calls to it end.
  void Kill(SimMember* member);
  std::unique_ptr<worker::MemberConnection> Connect(SimMember* from, uint64_t to);
  // Keeps it until this is destroyed: calls of others may still end there.
  void Keep(std::shared_ptr<const void> process) { kept_.push_back(std::move(process)); }

 private:
  EventQueue* const events_;
  Network* const network_;
  Random* const random_;
  std::map<uint64_t, std::unique_ptr<SimMember>> members_;  // by incarnation: all that ever were
  std::vector<std::shared_ptr<const void>> kept_;
};

// A source that keeps its reducers until it is destroyed.
class SimGroupSource final : public worker::ReducerSource {
 public:
  explicit SimGroupSource(worker::GroupSourceOptions options) : source_(std::move(options)) {}

  void SetView(const GroupView& view) { source_.SetView(view); }
  GroupViewId failed_view() const { return source_.failed_view(); }

  void Next(Callback<worker::ReducerOfGroup> done) override;
  void NoteFailure(const GroupViewId& view) override { source_.NoteFailure(view); }
  void SetOwnState(worker::OwnState* state) override { source_.SetOwnState(state); }
  void Cancel() override { source_.Cancel(); }

 private:
  std::vector<std::shared_ptr<worker::GroupReducer>> reducers_;
  worker::GroupSource source_;
};

}  // namespace lockstep::sim
