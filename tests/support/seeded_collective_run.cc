#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <tuple>

#include "tests/support/collective_runs.h"
#include "worker/collective/participant.h"

namespace lockstep::test {
namespace {

using worker::Participant;
using worker::Term;
using Kind = Participant::Action::Kind;
using Message = std::tuple<int, int, int>;  // from, to, number

// Frees nothing before the run ends, but overwrites a copy that has been read: whoever reads twice
// is found.
struct Flight {
  Message message;
  const std::byte* elements = nullptr;
  std::vector<std::byte> copy;
};

class SeededRun {
 public:
  SeededRun(const worker::Schedule& schedule, absl::Span<const MutableTensorView> vectors,
            int divisor, uint64_t seed, bool copies)
      : copies_(copies), random_(seed), size_(SizeOf(vectors[0].dtype)) {
    participants_.reserve(vectors.size());
    for (size_t rank = 0; rank < vectors.size(); ++rank) {
      participants_.emplace_back(&schedule, static_cast<int>(rank), vectors[rank], divisor);
    }
    run_.sent.resize(vectors.size());
  }

  CollectiveRun Run() {
    for (;;) {
      const size_t choices = participants_.size() + flights_.size() + acknowledgements_.size();
      const size_t choice = random_() % choices;
      if (choice < participants_.size()) {
        if (!Step(static_cast<int>(choice)) && IsStuck()) break;
      } else if (choice < participants_.size() + flights_.size()) {
        Arrive(choice - participants_.size());
      } else {
        Acknowledge(choice - participants_.size() - flights_.size());
      }
    }
    run_.has_ended = std::ranges::all_of(
        participants_, [](Participant& one) { return one.Next().kind == Kind::kDone; });
    return run_;
  }

 private:
  bool IsStuck() {
    if (!flights_.empty() || !acknowledgements_.empty()) return false;
    for (int rank = 0; rank < static_cast<int>(participants_.size()); ++rank) {
      if (Step(rank)) return false;
    }
    return true;
  }

  bool Step(int rank) {
    const Participant::Action action = participants_[rank].Next();
    if (action.kind == Kind::kSend) return Send(rank, action);
    if (action.kind == Kind::kReceive) return Receive(rank, action);
    return false;
  }

  bool Send(int rank, const Participant::Action& action) {
    Flight flight{{rank, action.to.rank, action.to.message},
                  static_cast<const std::byte*>(action.elements.data)};
    if (copies_) {
      flight.copy.assign(flight.elements, flight.elements + action.elements.num_bytes());
      flight.elements = flight.copy.data();
      acknowledgements_.push_back(flight.message);
    }
    ++run_.sent[rank].messages;
    run_.sent[rank].elements += action.elements.num_elements();
    flights_.push_back(std::move(flight));
    return true;
  }

  bool Receive(int rank, const Participant::Action& action) {
    std::vector<const void*> elements;
    std::vector<Message> messages;
    for (const Term& term : action.messages) {
      messages.emplace_back(term.rank, rank, term.message);
      const auto found = arrived_.find(messages.back());
      if (found == arrived_.end()) return false;
      elements.push_back(found->second.elements + action.received * size_);
    }
    const size_t missing = action.range.count - action.received;
    const size_t count = random_() % 2 == 0 ? missing : 1 + random_() % missing;
    participants_[rank].OnReceived(elements, count);
    if (count < missing) return true;
    for (const Message& message : messages) {
      const auto found = arrived_.find(message);
      std::ranges::fill(found->second.copy, std::byte{0xFF});
      arrived_.erase(found);
      if (!copies_) acknowledgements_.push_back(message);
    }
    return true;
  }

  void Arrive(size_t i) {
    const Message message = flights_[i].message;
    arrived_[message] = std::move(flights_[i]);
    flights_.erase(flights_.begin() + i);
  }

  void Acknowledge(size_t i) {
    const auto [from, to, number] = acknowledgements_[i];
    acknowledgements_.erase(acknowledgements_.begin() + i);
    participants_[from].OnSent({to, number});
  }

  const bool copies_;
  std::mt19937_64 random_;
  const size_t size_;
  std::vector<Participant> participants_;
  std::vector<Flight> flights_;
  std::map<Message, Flight> arrived_;
  std::vector<Message> acknowledgements_;
  CollectiveRun run_;
};

}  // namespace

CollectiveRun RunInSeededOrder(const worker::Schedule& schedule,
                               absl::Span<const MutableTensorView> vectors, int divisor,
                               uint64_t seed, bool copies) {
  return SeededRun(schedule, vectors, divisor, seed, copies).Run();
}

}  // namespace lockstep::test
