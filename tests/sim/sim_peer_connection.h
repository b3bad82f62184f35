// The calls of one simulated worker to another.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "tests/sim/event_queue.h"
#include "tests/sim/network.h"
#include "tests/sim/random.h"
#include "worker/peer/member_connection.h"
#include "worker/peer/peer_service.h"

namespace lockstep::sim {

// What a connection sees of a process.
struct PeerProcess {
  worker::PeerService* service = nullptr;
  Node node;
  bool is_gone = false;  // dead, or it hangs
  bool hangs = false;
};

// Used by one thread, as all that it is given, which outlives it.
class SimPeerConnection final : public worker::MemberConnection {
 public:
  SimPeerConnection(EventQueue* events, Network* network, Random* random, bool by_reference,
                    const PeerProcess* from, const PeerProcess* to)
      : events_(events),
        network_(network),
        random_(random),
        by_reference_(by_reference),
        from_(from),
        to_(to) {}

  void Send(SendRequest header, std::span<const std::byte> elements, StatusCallback done) override;
  void Compare(CompareRequest own, StatusCallback done) override;
  void Probe(ProbeRequest request, Callback<ProbeReply> done) override;
  void ReadState(ReadStateRequest request, Callback<ReadStateReply> done) override;
  void Cancel() override;

  const PeerProcess* to() const { return to_; }
  // The other process has died: what is in flight ends.
  void Break();

 private:
  template <typename Reply>
  void Call(absl::Duration deadline, Network::Serve<Reply> serve, Callback<Reply> done);
  void EndAll(const absl::Status& status);
  ReceivedTensors Receive(std::span<const std::byte> elements);

  EventQueue* const events_;
  Network* const network_;
  Random* const random_;
  const bool by_reference_;
  const PeerProcess* const from_;
  const PeerProcess* const to_;
  bool is_cancelled_ = false;
  uint64_t calls_ = 0;
  std::map<uint64_t, StatusCallback> in_flight_;  // ends a call that has no answer
};

}  // namespace lockstep::sim
