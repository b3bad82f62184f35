#include "tests/sim/sim_peers.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/collective/multi_worker_all_reduce.h"

namespace lockstep::sim {
namespace {

// No view takes longer: a failure is told within kMostSilence, and each step takes milliseconds.
constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr absl::Duration kMostSilence = absl::Seconds(8);
// Within it, calls and repetitions under way are over.
constexpr absl::Duration kAftermath = absl::Seconds(1);

worker::GroupReduction Plan(const PeerOptions& options, int workers) {
  const Topology topology{workers, options.towers};
  std::vector<worker::TensorSpec> tensors;
  for (const int64_t length : options.lengths) {
    tensors.push_back({absl::StrCat("t", tensors.size()), DType::kFloat32, Shape({length})});
  }
  const auto op =
      worker::MultiWorkerAllReduce::Create({.topology = topology, .all_reduce_spec = options.spec});
  return {topology, tensors, (*op)->Plan(topology, tensors).value(), options.average};
}

}  // namespace

SimPeers::SimPeers(const PeerOptions& options, SimRun* run)
    : options_(options),
      run_(run),
      random_(options.seed),
      network_(options.network, &events_, &random_) {
  for (int worker = 0; worker < options.workers; ++worker) members_.push_back(NewProcess(worker));
}

SimPeers::~SimPeers() {
  if (run_ != nullptr) run_->trace.Append(events_.trace());
  for (const auto& process : processes_) {
    for (const auto& reducer : process->reducers) {
      reducer->Cancel(absl::CancelledError("the simulation is over"));
    }
  }
  events_.RunUntil([] { return false; }, kAftermath);
}

std::string SimPeers::Run() {
  FormView();
  if (options_.accident != Accident::kNone) {
    events_.After(options_.accident_at, [this] { Befall(); });
  }
  for (;;) {
    const bool is_over = events_.RunUntil(
        [this] { return !wrong_.empty() || HasEnded() || NeedsView(); }, kPatience);
    if (!wrong_.empty()) return wrong_;
    if (!is_over) return absl::StrCat("view ", view_, ": some member waits for ever");
    if (HasEnded()) return "";
    FormView();
  }
}

SimPeers::Process* SimPeers::NewProcess(int worker) {
  auto process = std::make_unique<Process>();
  process->worker = worker;
  process->incarnation = processes_.size() + 1;
  process->seen.node = {Role::kWorker, static_cast<uint32_t>(worker)};
  return processes_.emplace_back(std::move(process)).get();
}

SimPeers::Process* SimPeers::Find(uint64_t incarnation) {
  return processes_[incarnation - 1].get();
}

void SimPeers::FormView() {
  int64_t step = options_.steps;
  for (const Process* member : members_) {
    if (!member->seen.is_gone) step = std::min(step, member->step);
  }
  if (view_ == 0) step = 0;
  std::vector<Process*> members;
  for (Process* const member : members_) {
    if (!member->seen.is_gone) {
      members.push_back(member);
    } else if (options_.has_successor) {
      members.push_back(NewProcess(member->worker));
    }
  }
  members_ = members;
  reduction_ = Plan(options_, static_cast<int>(members_.size()));
  worker::Group group{.job = 1, .view = {1, 1, ++view_}};
  for (const Process* member : members_) {
    group.members.push_back({static_cast<uint32_t>(member->worker), member->incarnation,
                             absl::StrCat("host:", member->incarnation)});
  }
  for (size_t position = 0; position < members_.size(); ++position) {
    Process* const member = members_[position];
    member->position = group.position = static_cast<int>(position);
    member->step = step;
    member->is_reducing = false;
    member->has_failed = false;
    events_.After(Compute(), [this, member, group] { JoinView(member, group); });
  }
}

void SimPeers::JoinView(Process* process, const worker::Group& group) {
  process->service.AnnounceView(group.job, group.view);
  worker::PeerGroupReducerOptions options{.group = group,
                                          .reduction = *reduction_,
                                          .message_bytes = options_.message_bytes,
                                          .timer = &events_,
                                          .clock = &events_};
  options.connect = [this, process](const worker::Group::Member& member) {
    auto connection =
        std::make_unique<SimPeerConnection>(&events_, &network_, &random_, options_.by_reference,
                                            &process->seen, &Find(member.incarnation)->seen);
    process->connections.push_back(connection.get());
    return connection;
  };
  process->reducers.push_back(
      worker::PeerGroupReducer::Create(std::move(options), &process->service).value());
  Reduce(process);
}

void SimPeers::Reduce(Process* process) {
  if (process->step == options_.steps || process->seen.is_gone) return;
  process->gradients.push_back(GradientsOf(process->worker, process->step));
  process->is_reducing = true;
  process->began = events_.Monotonic();
  std::vector<std::vector<TensorView>> views;
  for (const std::vector<Tensor>& tower : process->gradients.back()) {
    std::vector<TensorView>& own = views.emplace_back();
    for (const Tensor& gradient : tower) own.push_back(gradient.view());
  }
  process->reducers.back()->Reduce(
      process->step, views,
      [this, process](const absl::Status& status) { OnReduced(process, status); });
}

void SimPeers::OnReduced(Process* process, const absl::Status& status) {
  process->is_reducing = false;
  if (process->seen.is_gone || absl::IsCancelled(status)) return;
  if (!status.ok()) {
    process->has_failed = true;
    return CheckFailure(*process, status);
  }
  CheckResult(*process);
  ++process->step;
  const uint64_t view = view_;
  events_.After(Compute(), [this, process, view] {
    if (view == view_) Reduce(process);
  });
}

void SimPeers::CheckFailure(const Process& process, const absl::Status& failure) {
  if (victim_ == nullptr) {
    wrong_ = absl::StrCat("worker ", process.worker, " failed by itself: ", failure.ToString());
    return;
  }
  const std::string name =
      absl::StrCat("worker ", victim_->worker, " (host:", victim_->incarnation, ")");
  if (!absl::StrContains(failure.message(), name)) {
    wrong_ = absl::StrCat("worker ", process.worker, ": expected an error that names ", name,
                          ", got ", failure.ToString());
  }
  const absl::Duration silence = events_.Monotonic() - std::max(befell_at_, process.began);
  if (silence > kMostSilence) {
    wrong_ =
        absl::StrCat("worker ", process.worker, " was told after ", absl::FormatDuration(silence));
  }
}

void SimPeers::CheckResult(const Process& process) {
  std::vector<Gradients> memory;
  std::vector<std::vector<MutableTensorView>> tensors;
  for (const Process* member : members_) {
    Gradients& gradients = memory.emplace_back(GradientsOf(member->worker, process.step));
    for (std::vector<Tensor>& tower : gradients) {
      std::vector<MutableTensorView>& own = tensors.emplace_back();
      for (Tensor& gradient : tower) own.push_back(gradient.view());
    }
  }
  const int participants = static_cast<int>(tensors.size());
  RunBatchInMemory(reduction_->plan, tensors, options_.average ? participants : 1);
  for (int tower = 0; tower < options_.towers; ++tower) {
    for (size_t i = 0; i < options_.lengths.size(); ++i) {
      const TensorView got = process.reducers.back()->tensor(tower, static_cast<int>(i));
      const TensorView expected = tensors[process.position * options_.towers + tower][i];
      if (got.num_bytes() == 0 || std::memcmp(got.data, expected.data, got.num_bytes()) == 0) {
        continue;
      }
      wrong_ = absl::StrCat("worker ", process.worker, ", tower ", tower, ", step ", process.step,
                            ", tensor ", i, ": other bits");
    }
  }
}

void SimPeers::Befall() {
  if (HasEnded()) return;
  victim_ = members_[random_.Below(members_.size())];
  befell_at_ = events_.Monotonic();
  events_.trace().NoteFault(options_.accident == Accident::kHang ? Fault::kWorkerHung
                                                                 : Fault::kWorkerKilled);
  victim_->seen.is_gone = true;
  victim_->seen.hangs = options_.accident == Accident::kHang;
  if (victim_->seen.hangs) return;
  for (const auto& process : processes_) {
    for (SimPeerConnection* const connection : process->connections) {
      if (connection->to() == &victim_->seen) connection->Break();
    }
  }
}

bool SimPeers::HasEnded() const {
  return std::ranges::all_of(members_, [this](const Process* member) {
    return member->seen.is_gone || (member->step == options_.steps && !member->has_failed);
  });
}

bool SimPeers::NeedsView() const {
  return std::ranges::all_of(members_, [this](const Process* member) {
    return member->seen.is_gone || member->has_failed || member->step == options_.steps;
  });
}

SimPeers::Gradients SimPeers::GradientsOf(int worker, int64_t step) const {
  Gradients gradients;
  for (int tower = 0; tower < options_.towers; ++tower) {
    std::vector<Tensor>& own = gradients.emplace_back();
    std::mt19937_64 random(options_.seed * 1'000'003 + worker * 10'007 + tower * 101 + step);
    std::normal_distribution<float> normal;
    for (const int64_t length : options_.lengths) {
      Tensor& gradient = own.emplace_back(DType::kFloat32, Shape({length}));
      for (float& element : gradient.as<float>()) element = normal(random);
    }
  }
  return gradients;
}

}  // namespace lockstep::sim
