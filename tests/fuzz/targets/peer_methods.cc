// Every method of the service Peer, through the server of a worker. What is checked in comes from
// the other worker of its group.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/shm/fd_passing_client.h"
#include "common/shm/host.h"
#include "proto/peer.grpc.pb.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/target.h"
#include "tests/support/peer_workers.h"
#include "tests/support/placed_variable.h"
#include "tests/unit/worker/peer/peers_for_tests.h"
#include "worker/strategy/replicated/replica_server.h"

namespace lockstep::fuzz {
namespace {

constexpr int64_t kLength = 8;
constexpr int kOther = 0, kOwn = 1;  // workers
constexpr uint64_t kView = 1;

// What the first byte of an input says of the worker.
enum State : uint8_t {
  kInGroup = 1,
  kSharesMemory = 2,  // and has the other one's
  kReduces = 4,       // in step 0
  kHasVariables = 8,  // at version 7
  kWantsChecksums = 16,
};

// The variables of a worker, as others read them.
class OwnVariables {
 public:
  explicit OwnVariables(worker::PeerService* service) : service_(service) {
    server_.Serve(replicas_.get());
    service_->SetOwnState(&server_);
  }
  ~OwnVariables() { service_->SetOwnState(nullptr); }

 private:
  static worker::VariableLayout Layout() {
    Placement placement;
    placement.set_shards(1);
    *placement.add_variables() = PlacedVariable(0, "weights", 4, 0, true, 1);
    *placement.add_variables() = PlacedVariable(1, "loss", 1, 0, false, 0);
    placement.mutable_variables(0)->set_replicated(true);
    return worker::VariableLayout::Create(placement).value();
  }
  static OptimizerRules Rules() {
    OptimizerDef optimizer;
    optimizer.mutable_momentum()->set_momentum(0.5f);
    return OptimizerRules::Create(optimizer).value();
  }
  worker::ReplicaState State() const {
    worker::ReplicaState state = worker::UninitializedState(layout_, Rules());
    state.version = GlobalStep(7);
    for (const MutableTensorView& tensor : worker::TensorsOf(&state)) {
      std::ranges::fill(tensor.as<float>(), 1.0f);
    }
    return state;
  }

  worker::PeerService* const service_;
  const worker::VariableLayout layout_ = Layout();
  const std::unique_ptr<worker::Replicas> replicas_ =
      worker::Replicas::Create({}, layout_, Rules(), State()).value();
  worker::ReplicaServer server_;
};

void AttachMemoryOfOther(test::PeerWorkers* workers) {
  AttachPeerMemoryRequest request;
  *request.mutable_sender() = worker::IdentityOf(workers->GroupOf(2, kView, kOther));
  request.set_host(shm::BootId().value());
  const AttachMemoryReply offer = workers->service(kOwn)->OnAttachMemory(request).value();
  const auto segment = shm::Segment::Create("lockstep-fuzz", 4096).value();
  const auto shared =
      shm::ShareMemory(offer.socket(), offer.secret(), segment.get(), absl::Seconds(10));
  LOCKSTEP_CHECK(shared.ok());
}

void CallsPeer(absl::string_view input) {
  if (input.empty()) return;
  const auto has = [&](State state) { return (static_cast<uint8_t>(input[0]) & state) != 0; };
  test::PeerWorkers workers(2);
  LOCKSTEP_CHECK(
      workers.service(kOther)
          ->Attach(std::make_shared<worker::AnsweringReceiver>(workers.GroupOf(2, kView, kOther)))
          .ok());
  std::optional<OwnVariables> variables;
  if (has(kHasVariables)) variables.emplace(workers.service(kOwn));
  std::optional<worker::Reducing> reducing;  // reads its gradient as long as there is the reducer
  std::unique_ptr<worker::PeerGroupReducer> reducer;
  if (has(kInGroup)) {
    worker::PeerGroupReducerOptions options =
        workers.OptionsFor(workers.GroupOf(2, kView, kOwn), worker::ReductionOver(2, kLength));
    options.shared_memory = has(kSharesMemory);
    options.checksums = has(kWantsChecksums);
    reducer = worker::PeerGroupReducer::Create(std::move(options), workers.service(kOwn)).value();
    if (has(kSharesMemory)) AttachMemoryOfOther(&workers);
    if (has(kReduces)) reducing.emplace(reducer.get(), kLength);
  }
  MakeCalls(workers.address(kOwn), CallsOf({Peer::service_full_name()}, input.substr(1)));
  reducer.reset();
  if (reducing.has_value()) CheckMessage(reducing->Wait());
}

const Target kPeerMethods("peer_methods", CallsPeer);

}  // namespace
}  // namespace lockstep::fuzz
