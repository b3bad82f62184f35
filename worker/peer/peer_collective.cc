#include "worker/peer/peer_collective.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"
#include "worker/peer/compare_reductions.h"

namespace lockstep::worker {
namespace {

std::vector<std::string> NamesOf(const Group& group) {
  std::vector<std::string> names;
  for (int position = 0; position < group.size(); ++position) {
    names.push_back(NameOfMember(group, position));
  }
  return names;
}

std::vector<MergeScope> ScopesOf(const GroupReduction& reduction, const ReductionLayout& layout) {
  const int vectors = layout.num_vectors();
  return MergeScopes(vectors,
                     reduction.merge_scope > 0 ? reduction.merge_scope : std::max(vectors, 1));
}

uint64_t KeyOf(const Group& group, int towers) {
  std::vector<DeviceId> devices;
  for (const Group::Member& member : group.members) {
    for (int tower = 0; tower < towers; ++tower) {
      devices.push_back({static_cast<int>(member.worker), DeviceKind::kCpu, tower});
    }
  }
  return CollectiveKeys::GroupOf(devices);
}

std::optional<ReductionAlgorithm> AlgorithmOf(absl::string_view name) {
  for (int i = 0; i <= static_cast<int>(ReductionAlgorithm::kGather); ++i) {
    if (name == Name(static_cast<ReductionAlgorithm>(i))) return static_cast<ReductionAlgorithm>(i);
  }
  return std::nullopt;
}

}  // namespace

PeerCollective::PeerCollective(Options options, ReductionLayout layout,
                               absl::Span<std::byte* const> towers)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      towers_(towers.begin(), towers.end()),
      names_(NamesOf(options_.group)),
      description_(DescribeReduction(options_.reduction, options_.message_bytes)),
      member_memory_(options_.memory, options_.group.size()),
      monitor_({.position = options_.group.position,
                .self = IdentityOf(options_.group),
                .names = names_,
                .connections = options_.connections,
                .timer = options_.timer,
                .clock = options_.clock,
                .patience = options_.patience}),
      order_(ScopesOf(options_.reduction, layout_)),
      repeats_(options_.group.size()) {
  const GroupReduction& reduction = options_.reduction;
  const Topology& topology = reduction.topology;
  const int first_rank = topology.rank(options_.group.position, 0);
  const int divisor = reduction.average ? topology.num_participants() : 1;
  const uint64_t key = KeyOf(options_.group, topology.towers);
  for (int v = 0; v < layout_.num_vectors(); ++v) {
    const Schedule& schedule = reduction.plan.schedules[v];
    vectors_.push_back(std::make_unique<VectorReduction>(
        v, layout_.num_vectors(),
        CollectiveCall{
            {key, 0}, reduction.plan.algorithms[v], static_cast<int64_t>(schedule.length())},
        LocalParticipants(&schedule, first_rank, layout_.VectorOf(v, towers_), divisor), this));
  }
}

void PeerCollective::Reduce(int64_t step, absl::Span<const std::vector<TensorView>> gradients,
                            StatusCallback done) {
  bool compares = false;
  absl::Status failure;
  StatusCallback refused;
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!is_running_);
    failure = failure_;
    if (!failure.ok()) {
      refused = std::move(done);
    } else {
      is_running_ = true;
      has_outcome_ = false;
      done_ = std::move(done);
      number_ = reductions_++;
      compares = number_ == 0 && options_.group.size() > 1;
      open_parts_ = layout_.num_vectors() + (compares ? 1 : 0);
      ++inside_;
      if (open_parts_ == 0) End(absl::OkStatus());
    }
  }
  if (refused) return refused(failure);
  monitor_.Begin(shared_from_this());
  if (compares) {
    monitor_.CompareWithNext(shared_from_this(), description_, [this] { OnPartDone(); });
  }
  step_ = step;
  gradients_ = gradients;
  order_.Restart();
  BeginVectors();
  Leave();
}

void PeerCollective::OnVectorDone() {
  order_.OnDone();
  BeginVectors();
  OnPartDone();
}

void PeerCollective::BeginVectors() {
  std::vector<const void*> first;
  order_.BeginVectors([&](size_t v) {
    PlaceGradients(static_cast<int>(v), &first);
    vectors_[v]->Start(number_, step_, first);
  });
}

void PeerCollective::PlaceGradients(int v, std::vector<const void*>* first) const {
  first->clear();
  const LocalParticipants& participants = vectors_[v]->participants();
  // Members on this host read only the towers' memory.
  if (options_.memory == nullptr && participants.MayBeginElsewhere()) {
    layout_.FindGradients(v, gradients_, first);
  }
  if (first->empty()) layout_.CopyGradients(v, gradients_, towers_, participants.first_rank());
}

GroupTraffic PeerCollective::traffic() const {
  GroupTraffic traffic;
  for (const auto& vector : vectors_) {
    const LocalParticipants& participants = vector->participants();
    traffic.within.messages += participants.sent_within().messages;
    traffic.within.elements += participants.sent_within().elements;
    traffic.across.messages += participants.sent_across().messages;
    traffic.across.elements += participants.sent_across().elements;
  }
  return traffic;
}

void PeerCollective::Close() {
  Fail(absl::CancelledError("the collective was cancelled"));
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return inside_ == 0 && !is_running_;
  };
  monitor_.Close();
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_over));
}

absl::Status PeerCollective::Compare(int position, const CompareRequest& theirs) {
  absl::Status status = CompareReductions(description_, theirs, names_[position]);
  if (!status.ok()) Fail(status);
  return status;
}

void PeerCollective::Receive(int position, std::shared_ptr<SendCall> call) {
  const SendRequest& request = call->request();
  const auto refuse = [&](const auto&... what) {
    call->Respond(absl::InvalidArgumentError(
        absl::StrCat("message of a collective from ", names_[position], ": ", what...)));
  };
  if (request.instance() < 0 || vectors_.empty()) {
    return refuse("no instance ", request.instance());
  }
  const std::optional<ReductionAlgorithm> algorithm = AlgorithmOf(request.algorithm());
  if (!algorithm.has_value()) {
    return refuse("unknown algorithm \"", Printable(request.algorithm(), kMaxShownAlgorithm), "\"");
  }
  const MessageId message = {static_cast<int>(request.from()), static_cast<int>(request.to()),
                             static_cast<int>(request.number())};
  if (message.from < 0 || PositionOf(message.from) != position) {
    return refuse("participant ", request.from(), " is not of its towers");
  }
  const auto num_vectors = static_cast<int64_t>(vectors_.size());
  VectorReduction::Incoming incoming{
      .reduction = request.instance() / num_vectors,
      .step = request.step(),
      .position = position,
      .said = {{request.group(), request.instance()}, *algorithm, request.length()},
      .message = message};
  if (const absl::Status status = TakeElements(call.get(), &incoming); !status.ok()) {
    return call->Respond(status);
  }
  VectorReduction* const vector = vectors_[request.instance() % num_vectors].get();
  incoming.call = std::move(call);
  vector->OnMessage(std::move(incoming));
}

absl::Status PeerCollective::TakeElements(SendCall* call,
                                          VectorReduction::Incoming* incoming) const {
  const SendRequest& request = call->request();
  LOCKSTEP_ASSIGN_OR_RETURN(ReceivedTensors payload, call->TakeTensors());
  if (!request.in_memory()) {
    incoming->owner = payload.owned_segments();
    incoming->elements = payload.segments();
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      MemberMemory::Elements elements,
      member_memory_.Find(incoming->position, request.place(), request.size()));
  const auto owner = std::make_shared<const MemberMemory::Elements>(std::move(elements));
  incoming->owner = owner;
  incoming->elements = {&owner->bytes, 1};
  return absl::OkStatus();
}

absl::Status PeerCollective::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

void PeerCollective::OnNewerView(const GroupViewId& newest) {
  Fail(absl::AbortedError(absl::StrCat("collective: ", ToString(options_.group.view),
                                       " is over: the newer one is ", ToString(newest))));
}

void PeerCollective::Enter() {
  absl::MutexLock lock(&mutex_);
  ++inside_;
}

void PeerCollective::Leave() {
  for (;;) {
    StatusCallback done;
    absl::Status outcome;
    {
      absl::MutexLock lock(&mutex_);
      if (--inside_ > 0 || !is_running_ || !has_outcome_) return;
      done = std::move(done_);
      outcome = outcome_;
      is_running_ = false;
      monitor_.End();
      // Closing waits for the callback. The next reduction may begin, and end, in it.
      ++inside_;
    }
    done(outcome);
  }
}

void PeerCollective::End(const absl::Status& outcome) {
  if (!is_running_ || has_outcome_) return;
  has_outcome_ = true;
  outcome_ = outcome;
}

void PeerCollective::Send(int vector, int64_t reduction, int64_t step,
                          const LocalParticipants::Send& send) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    ++inside_;
  }
  Transmit({vector, reduction, step, send});
}

void PeerCollective::Transmit(const Outgoing& outgoing) {
  const CollectiveCall call = vectors_[outgoing.vector]->CallOf(outgoing.reduction);
  const MessageId& message = outgoing.send.message;
  SendRequest header;
  *header.mutable_sender() = IdentityOf(options_.group);
  header.set_group(call.key.group);
  header.set_instance(call.key.instance);
  header.set_step(outgoing.step);
  header.set_algorithm(std::string(Name(call.algorithm)));
  header.set_length(call.length);
  header.set_from(static_cast<uint32_t>(message.from));
  header.set_to(static_cast<uint32_t>(message.to));
  header.set_number(static_cast<uint32_t>(message.number));
  options_.connections[PositionOf(message.to)]->Send(
      std::move(header), outgoing.send.elements.bytes(),
      [self = shared_from_this(), outgoing](const absl::Status& status) {
        self->OnAnswered(outgoing, status);
      });
}

void PeerCollective::OnAnswered(const Outgoing& outgoing, const absl::Status& status) {
  const int position = PositionOf(outgoing.send.message.to);
  if (status.ok()) {
    std::vector<Outgoing> due;
    {
      absl::MutexLock lock(&mutex_);
      due = repeats_.OnAnswered(position);
    }
    for (const Outgoing& waiting : due) Transmit(waiting);
    monitor_.OnAnswered(position);
    vectors_[outgoing.vector]->OnAnswered(outgoing.send.message);
    return Leave();
  }
  monitor_.OnError(position, status);
  if (!MayRepeat(status)) Fail(status);
  RepeatLater(position, outgoing);
}

void PeerCollective::RepeatLater(int position, const Outgoing& outgoing) {
  std::optional<absl::Duration> pause;
  {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) pause = repeats_.Add(position, outgoing, options_.clock->Monotonic());
  }
  if (!pause.has_value()) return Leave();
  options_.timer->After(*pause, [weak = weak_from_this(), position] {
    if (const auto self = weak.lock()) self->Repeat(position);
  });
}

void PeerCollective::Repeat(int position) {
  std::vector<Outgoing> due;
  {
    absl::MutexLock lock(&mutex_);
    due = repeats_.Take(position);
  }
  for (const Outgoing& outgoing : due) Transmit(outgoing);
}

void PeerCollective::OnPartDone() {
  absl::MutexLock lock(&mutex_);
  if (--open_parts_ == 0) End(absl::OkStatus());
}

void PeerCollective::Fail(absl::Status failure) {
  std::vector<Outgoing> given_up;
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    failure_ = failure;
    End(failure);
    ++inside_;
    given_up = repeats_.TakeAll();
  }
  for (MemberConnection* const connection : options_.connections) {
    if (connection != nullptr) connection->Cancel();
  }
  for (const auto& vector : vectors_) vector->Stop(failure);
  for (size_t i = 0; i < given_up.size(); ++i) Leave();
  Leave();
}

}  // namespace lockstep::worker
