#include "common/client/variable_puller.h"

#include <optional>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/client/pull_plan.h"
#include "common/client/pump.h"

namespace lockstep {
namespace {

PullPlan::Extent ExtentOf(const PullTarget& target) {
  const uint64_t bytes = target.value.num_bytes();
  if (!target.rows.has_value() || target.rows->empty()) return {.units = bytes};
  const uint64_t rows = target.rows->size();
  return {.units = rows, .unit_bytes = bytes / rows + sizeof(int64_t)};
}

std::span<const int64_t> RowsOf(const PullTarget& target, const PullPlan::Piece& piece) {
  return target.rows->subspan(piece.first, piece.count);
}

std::span<std::byte> MemoryOf(const PullTarget& target, const PullPlan::Piece& piece) {
  const std::span<std::byte> bytes = target.value.bytes();
  if (!target.rows.has_value()) return bytes.subspan(piece.first, piece.count);
  const uint64_t row_bytes = bytes.size() / target.rows->size();
  return bytes.subspan(piece.first * row_bytes, piece.count * row_bytes);
}

void Describe(const PullTarget& target, const PullPlan::Piece& piece, PullPiece* to) {
  to->set_variable(target.variable.value());
  if (target.rows.has_value()) {
    const std::span<const int64_t> rows = RowsOf(target, piece);
    to->mutable_rows()->Add(rows.begin(), rows.end());
  } else {
    to->set_offset(piece.first);
    to->set_size(piece.count);
  }
}

bool Answers(const PullPiece& reply, const PullTarget& target, const PullPlan::Piece& piece) {
  const uint64_t offset = target.rows.has_value() ? 0 : piece.first;
  return reply.variable() == target.variable.value() && reply.offset() == offset;
}

}  // namespace

class VariablePuller::Impl {
 public:
  Impl(PsData* ps, const PullerOptions& options, std::vector<PullTarget> targets)
      : ps_(ps),
        identity_(options.identity),
        averages_(options.averages),
        targets_(std::move(targets)),
        plan_(options),
        pump_([this] { return Step(); }) {}

  ~Impl() {
    pump_.Close();
    // Whoever started a fetch is told, even of one that was never completed.
    Done<GlobalStep> done;
    {
      absl::MutexLock lock(&mutex_);
      done = std::move(done_);
    }
    if (done) done(absl::CancelledError("the puller was destroyed"));
  }

  void SetTarget(size_t target, MutableTensorView value,
                 std::optional<std::span<const int64_t>> rows) {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!done_);
    LOCKSTEP_CHECK(!rows.has_value() || value.shape.dim(0) == rows->size());
    targets_[target].value = std::move(value);
    targets_[target].rows = rows;
  }

  void Fetch(GlobalStep version, Done<GlobalStep> done, PullAhead ahead) {
    {
      absl::MutexLock lock(&mutex_);
      LOCKSTEP_CHECK(!done_);
      done_ = std::move(done);
      extents_.clear();
      for (const PullTarget& target : targets_) extents_.push_back(ExtentOf(target));
      plan_.Start(version, extents_, ahead, Now());
    }
    pump_.Run();
  }

 private:
  struct Call {
    size_t index;
    PullRequest request;
  };

  static absl::Duration Now() { return Clock::Real()->Monotonic(); }

  // Sends one request, or tells that the fetch is over.
  bool Step() {
    std::shared_ptr<Gate::Pass> hold = pump_.Hold();
    if (!*hold) return false;
    std::optional<Call> call;
    Done<GlobalStep> done;
    std::optional<absl::StatusOr<GlobalStep>> result;
    {
      absl::MutexLock lock(&mutex_);
      if (!done_) return false;
      call = NextCall();
      if (!call) result = plan_.Result();
      if (result) done = std::exchange(done_, nullptr);
    }
    if (call) Send(*std::move(call), std::move(hold));
    if (result) done(*std::move(result));
    return call.has_value();
  }

  std::optional<Call> NextCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto outgoing = plan_.Next(Now());
    if (!outgoing) {
      if (const auto wake = plan_.WakeAt()) pump_.RunIn(*wake - Now());
      return std::nullopt;
    }
    Call call{.index = outgoing->request};
    *call.request.mutable_worker() = identity_;
    call.request.set_version(outgoing->version.value());
    call.request.set_averages(averages_);
    for (const PullPlan::Piece& piece : plan_.pieces(outgoing->request)) {
      Describe(targets_[piece.target], piece, call.request.add_pieces());
    }
    return call;
  }

  void Send(Call call, std::shared_ptr<Gate::Pass> hold) {
    ps_->Pull(call.request, [this, index = call.index, hold = std::move(hold)](
                                const absl::StatusOr<std::unique_ptr<PulledValues>>& values) {
      absl::Status status = values.status();
      // Nobody else touches the targets of a request in flight.
      if (status.ok()) status = CopyToTargets(index, **values);
      {
        absl::MutexLock lock(&mutex_);
        if (status.ok()) {
          plan_.OnReply(index, GlobalStep((*values)->header().version()), Now());
        } else {
          plan_.OnError(index, status, Now());
        }
      }
      pump_.Run();
    });
  }

  // Targets and the pieces of a request stay as they are during a fetch, so reading them needs no
  // lock.
  absl::Status CopyToTargets(size_t index,
                             const PulledValues& values) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::vector<PullPlan::Piece>& pieces = plan_.pieces(index);
    const PullReply& header = values.header();
    bool matches = header.pieces_size() == static_cast<int>(pieces.size());
    std::vector<std::span<std::byte>> memory;
    for (size_t i = 0; matches && i < pieces.size(); ++i) {
      const PullTarget& target = targets_[pieces[i].target];
      matches = Answers(header.pieces(static_cast<int>(i)), target, pieces[i]);
      memory.push_back(MemoryOf(target, pieces[i]));
    }
    if (!matches)
      return absl::InternalError("pull was answered with pieces that were not asked for");
    return values.CopyTo(memory);
  }

  PsData* const ps_;  // outlives the puller
  const WorkerIdentity identity_;
  const bool averages_;
  absl::Mutex mutex_;
  std::vector<PullTarget> targets_ ABSL_GUARDED_BY(mutex_);  // changed between fetches only
  std::vector<PullPlan::Extent> extents_ ABSL_GUARDED_BY(mutex_);
  PullPlan plan_ ABSL_GUARDED_BY(mutex_);
  Done<GlobalStep> done_ ABSL_GUARDED_BY(mutex_);  // while a fetch is under way
  Pump pump_;
};

VariablePuller::VariablePuller(PsData* ps, const PullerOptions& options,
                               std::vector<PullTarget> targets)
    : impl_(std::make_unique<Impl>(ps, options, std::move(targets))) {}

VariablePuller::~VariablePuller() = default;

void VariablePuller::SetTarget(size_t target, MutableTensorView value,
                               std::optional<std::span<const int64_t>> rows) {
  impl_->SetTarget(target, std::move(value), rows);
}

void VariablePuller::Fetch(GlobalStep version, Done<GlobalStep> done, PullAhead ahead) {
  impl_->Fetch(version, std::move(done), ahead);
}

}  // namespace lockstep
