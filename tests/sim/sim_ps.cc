#include "tests/sim/sim_ps.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/running_clock.h"
#include "common/fs/path.h"
#include "tests/sim/sim_copy_targets.h"

namespace lockstep::sim {
namespace {

// Of process n, counted from 1: kPorts * n + its ps.
constexpr uint32_t kPorts = 100;
// Tells a copy's server from the shard's own of the same process.
constexpr uint64_t kCopyIncarnation = kPorts / 2;
// As a ps does.
constexpr absl::Duration kClockPoll = absl::Milliseconds(200);

}  // namespace

struct SimPs::Process {
  Process(const Node& node, PlantedBug planted, const AddressBook* book, Network* network,
          EventQueue* events)
      : clock(events), timer(node, events), copies(node, planted, book, network, &clock, events) {}
  // What waits for a copy holds its shard.
  ~Process() { copies.Close(); }

  bool is_alive = true;
  bool is_stopped = false;
  uint64_t stops = 0;
  RunningClock clock;
  NodeTimer timer;
  SimCopyTargets copies;  // of its shards
  std::unique_ptr<SimPsServer> own;
  std::unique_ptr<SimPsServer> copy;  // null: no chief has asked for it
};

// Passes calls to a server, or to that of the process of now.
class SimPs::Control final : public PsControl {
 public:
  // `server`: null for the shard's own, of whichever process.
  Control(SimPs* ps, SimPsServer* server) : ps_(ps), server_(server) {}

  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override {
    SimPsServer* const server = server_ == nullptr ? &ps_->own() : server_;
    if (!server->is_alive()) return done(absl::UnavailableError("Connection refused"));
    const auto* const save = dynamic_cast<const SaveRequest*>(&request);
    if (save != nullptr && ps_->death_.has_value()) {
      return ps_->DieInSave(server, *save, std::move(done));
    }
    const auto* const get_view = dynamic_cast<const GetViewRequest*>(&request);
    absl::StatusOr<uint32_t> port = uint32_t{0};  // of the copy
    if (get_view != nullptr && get_view->opens_copy_port()) port = ps_->OpenCopyPort();
    if (!port.ok()) return done(port.status());
    server->control()->Start(
        method, request, reply,
        [server, reply, port = *port, done = std::move(done)](const absl::Status& status) mutable {
          if (port > 0) static_cast<SetViewReply*>(reply)->set_copy_port(port);
          done(server->AsClientSees(status));
        });
  }

 private:
  SimPs* const ps_;
  SimPsServer* const server_;
};

class SimPs::Data final : public PsData {
 public:
  // As Control.
  Data(SimPs* ps, SimPsServer* server) : ps_(ps), server_(server) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    Pass<PushReply>(std::move(done), [&](PsData* to, Callback<PushReply> answer) {
      to->Push(header, std::move(payload), std::move(answer));
    });
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    Pass<PushPullReply>(std::move(done), [&](PsData* to, Callback<PushPullReply> answer) {
      to->PushPull(header, std::move(payload), std::move(answer));
    });
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    using Reply = std::unique_ptr<PulledValues>;
    Pass<Reply>(std::move(done),
                [&](PsData* to, Callback<Reply> answer) { to->Pull(request, std::move(answer)); });
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    Pass<DequeueTokenReply>(std::move(done), [&](PsData* to, Callback<DequeueTokenReply> answer) {
      to->DequeueToken(request, std::move(answer));
    });
  }
  void StoreVersion(const StoreVersionRequest& header,
                    std::vector<std::span<const std::byte>> payload,
                    Callback<StoreVersionReply> done) override {
    Pass<StoreVersionReply>(std::move(done), [&](PsData* to, Callback<StoreVersionReply> answer) {
      to->StoreVersion(header, std::move(payload), std::move(answer));
    });
  }
  void PutState(const PutStateRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PutStateReply> done) override {
    Pass<PutStateReply>(std::move(done), [&](PsData* to, Callback<PutStateReply> answer) {
      to->PutState(header, std::move(payload), std::move(answer));
    });
  }
  void Cancel() override {}

 private:
  template <typename Reply, typename Call>
  void Pass(Callback<Reply> done, Call call) {
    SimPsServer* const server = server_ == nullptr ? &ps_->own() : server_;
    if (!server->is_alive()) return done(absl::UnavailableError("Connection refused"));
    call(server->data(), [server, done = std::move(done)](absl::StatusOr<Reply> reply) mutable {
      const absl::Status status = server->AsClientSees(reply.status());
      if (!status.ok()) return done(status);
      done(std::move(reply));
    });
  }

  SimPs* const ps_;
  SimPsServer* const server_;
};

SimPs::SimPs(SimPsOptions options, AddressBook* book, Network* network, EventQueue* events,
             History* history)
    : options_(std::move(options)),
      book_(book),
      network_(network),
      events_(events),
      history_(history) {
  controls_.push_back(std::make_unique<Control>(this, nullptr));
  data_.push_back(std::make_unique<Data>(this, nullptr));
  book_->Add(options_.address_of(options_.index + 1),
             {node(), controls_.back().get(), data_.back().get()});
  Start();
}

SimPs::~SimPs() = default;

std::unique_ptr<SimPsServer> SimPs::MakeServer(uint32_t shard, uint32_t port, Process* process) {
  const Incarnation incarnation(kPorts * processes_.size() + options_.index);
  const bool is_copy = shard != options_.index;
  return std::make_unique<SimPsServer>(SimPsServerOptions{
      .id = {shard, Incarnation(incarnation.value() + (is_copy ? kCopyIncarnation : 0))},
      .process = incarnation,
      .node = node(),
      .address = options_.address_of(port),
      .planted = options_.planted,
      .make_copy_target =
          [process](const ps::CopyTargetOptions& of) { return process->copies.Make(of); },
      .last = &last_,
      .clock = &process->clock,
      .events = events_,
      .history = history_});
}

void SimPs::Start() {
  LOCKSTEP_CHECK(!is_alive());
  processes_.push_back(
      std::make_unique<Process>(node(), options_.planted, book_, network_, events_));
  Process* const process = processes_.back().get();
  process->own = MakeServer(options_.index, options_.index + 1, process);
  Tick(process);
}

void SimPs::Tick(Process* process) {
  if (!process->is_alive) return;
  process->clock.Monotonic();
  process->timer.After(kClockPoll, [this, process] { Tick(process); });
}

absl::StatusOr<uint32_t> SimPs::OpenCopyPort() {
  if (options_.num_ps < 2) return absl::FailedPreconditionError("a copy of the only ps");
  Process* const process = processes_.back().get();
  const auto port = static_cast<uint32_t>(kPorts * processes_.size() + options_.index);
  if (process->copy != nullptr) return port;
  const uint32_t shard = (options_.index + options_.num_ps - 1) % options_.num_ps;
  process->copy = MakeServer(shard, port, process);
  controls_.push_back(std::make_unique<Control>(this, process->copy.get()));
  data_.push_back(std::make_unique<Data>(this, process->copy.get()));
  book_->Add(process->copy->address(), {node(), controls_.back().get(), data_.back().get()});
  return port;
}

void SimPs::Kill() {
  if (!is_alive()) return;
  events_->trace().NoteFault(Fault::kPsKilled);
  Process* const process = processes_.back().get();
  process->is_alive = false;
  process->own->Kill();
  if (process->copy != nullptr) process->copy->Kill();
  process->copies.Close();
  if (process->is_stopped) Continue(process);
}

void SimPs::Suspend(absl::Duration pause) {
  Process* const process = processes_.back().get();
  if (!is_alive() || process->is_stopped) return;
  events_->trace().NoteFault(Fault::kPsSuspended);
  process->is_stopped = true;
  events_->Stop(node());
  CloseConnections(process, ++process->stops, kKeepalive);
  events_->After(pause, [this, process] {
    if (process->is_stopped) Continue(process);
  });
}

// An attempt to connect to it anew, which calls wait for, takes as long as a call of the chief.
void SimPs::CloseConnections(Process* process, uint64_t stop, absl::Duration wait) {
  events_->After(wait, [this, process, stop] {
    if (!process->is_stopped || process->stops != stop) return;
    network_->CloseConnections(node());
    CloseConnections(process, stop, rpc::kControlDeadline);
  });
}

void SimPs::Continue(Process* process) {
  process->is_stopped = false;
  events_->Continue(node());
}

void SimPs::DieInSave(SimPsServer* server, const SaveRequest& request, StatusCallback done) {
  const DeathAtDisk death = *std::exchange(death_, std::nullopt);
  SaveReply reply;
  DiesAtDisk(death, FolderOf(request.folder()), &events_->trace(),
             [&] { server->control()->Start(kSave, request, &reply, [](const absl::Status&) {}); });
  Kill();
  done(absl::UnavailableError("Connection reset by peer"));
  death.died();
}

bool SimPs::is_alive() const { return !processes_.empty() && processes_.back()->is_alive; }

bool SimPs::is_stopped() const { return !processes_.empty() && processes_.back()->is_stopped; }

SimPsServer& SimPs::own() const { return *processes_.back()->own; }

SimPsServer* SimPs::copy() const { return processes_.back()->copy.get(); }

void SimPs::AppendServers(std::vector<SimPsServer*>* servers) const {
  for (const auto& process : processes_) {
    servers->push_back(process->own.get());
    if (process->copy != nullptr) servers->push_back(process->copy.get());
  }
}

}  // namespace lockstep::sim
