#include "common/client/variable_puller.h"

#include <algorithm>
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
#include "common/client/serial_runner.h"
#include "common/tensor/half_width.h"
#include "common/tensor_proto/convert.h"

namespace lockstep {
namespace {

// `wire_type`: of dense float32 values.
PullPlan::Extent ExtentOf(const PullTarget& target, bool shares_values, DType wire_type) {
  const uint64_t bytes = target.value.num_bytes();
  const bool may_be_narrow =
      target.value.dtype == DType::kFloat32 && !target.rows.has_value() && !target.as_it_is;
  if (may_be_narrow && IsHalfWidth(wire_type)) {
    return {.units = static_cast<uint64_t>(target.value.num_elements()),
            .unit_bytes = SizeOf(wire_type),
            .is_narrow = true};
  }
  if (!target.rows.has_value() || target.rows->empty()) {
    return {.units = bytes,
            .may_be_in_memory = shares_values,
            .stays = shares_values && target.in_place};
  }
  const uint64_t rows = target.rows->size();
  return {.units = rows,
          .unit_bytes = bytes / rows + sizeof(int64_t),
          .may_be_in_memory = shares_values};
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

// `unit_bytes`: of a piece that names no rows.
void Describe(const PullTarget& target, const PullPlan::Piece& piece, uint64_t unit_bytes,
              PullPiece* to) {
  to->set_variable(target.variable.value());
  if (target.rows.has_value()) {
    const std::span<const int64_t> rows = RowsOf(target, piece);
    to->mutable_rows()->Add(rows.begin(), rows.end());
  } else {
    to->set_offset(piece.first * unit_bytes);
    to->set_size(piece.count * unit_bytes);
  }
}

bool Answers(const PullPiece& reply, const PullTarget& target, const PullPlan::Piece& piece,
             uint64_t unit_bytes) {
  const uint64_t offset = target.rows.has_value() ? 0 : piece.first * unit_bytes;
  return reply.variable() == target.variable.value() && reply.offset() == offset;
}

}  // namespace

class VariablePuller::Impl {
 public:
  Impl(PsData* ps, const PullerOptions& options, std::vector<PullTarget> targets)
      : ps_(ps),
        identity_(options.identity),
        wire_type_(options.wire_type),
        averages_(options.averages),
        targets_(std::move(targets)),
        plan_(options),
        runner_([this] { return Step(); }) {}

  ~Impl() {
    runner_.Close();
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
      Start(version, ps_->SharesValues() && !averages_, ahead);
    }
    runner_.Run();
  }

  const void* Value(size_t target) const {
    absl::MutexLock lock(&mutex_);
    const void* const shown = shown_.empty() ? nullptr : shown_[target];
    return shown != nullptr ? shown : targets_[target].value.data;
  }

 private:
  struct Call {
    size_t index;
    PullRequest request;
    bool is_narrow = false;
  };

  // Of what is counted in a piece that names no rows: elements on the wire, or bytes.
  uint64_t UnitBytes(bool is_narrow) const { return is_narrow ? SizeOf(wire_type_) : 1; }

  static absl::Duration Now() { return Clock::Real()->Monotonic(); }

  void Start(GlobalStep version, bool shares_values, PullAhead ahead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    asked_ = version;
    shares_values_ = shares_values;
    extents_.clear();
    bool moves = false;
    const DType wire_type = ps_->SharesMemory() ? DType::kFloat32 : wire_type_;
    for (const PullTarget& target : targets_) {
      extents_.push_back(ExtentOf(target, shares_values, wire_type));
      moves = moves || (target.in_place && extents_.back().units > 0);
    }
    plan_.Start(version, extents_, ahead);
    // What is in place is looked at for as long as nothing newer has been fetched.
    if (moves) {
      kept_.clear();
    } else {
      for (auto& values : in_place_) {
        if (values != nullptr) kept_.push_back(std::move(values));
      }
    }
    in_place_.clear();
    in_place_.resize(plan_.num_requests());
    shown_.clear();
  }

  // When all is there.
  void LookAtValues() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const bool shows_any =
        std::ranges::any_of(in_place_, [](const auto& values) { return values != nullptr; });
    if (!shows_any) return;
    shown_.assign(targets_.size(), nullptr);
    for (size_t request = 0; request < in_place_.size(); ++request) {
      if (in_place_[request] == nullptr) continue;
      const std::vector<PullPlan::Piece>& pieces = plan_.pieces(request);
      for (size_t i = 0; i < pieces.size(); ++i) {
        const size_t target = pieces[i].target;
        // What stays is never cut.
        if (targets_[target].in_place) shown_[target] = in_place_[request]->in_place()[i].data();
      }
    }
  }

  // Sends one request, or tells that the fetch is over.
  bool Step() {
    std::shared_ptr<Gate::Pass> hold = runner_.Hold();
    if (!*hold) return false;
    std::optional<Call> call;
    Done<GlobalStep> done;
    std::optional<absl::StatusOr<GlobalStep>> result;
    {
      absl::MutexLock lock(&mutex_);
      if (!done_) return false;
      call = NextCall();
      if (!call) result = plan_.Result();
      if (result && shares_values_ && absl::IsOutOfRange(result->status())) {
        // Not shown after all.
        Start(asked_, /*shares_values=*/false, PullAhead::kWindow);
        return true;
      }
      if (result && result->ok()) LookAtValues();
      if (result) done = std::exchange(done_, nullptr);
    }
    if (call) Send(*std::move(call), std::move(hold));
    if (result) done(*std::move(result));
    return call.has_value();
  }

  std::optional<Call> NextCall() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto outgoing = plan_.Next(Now());
    if (!outgoing) {
      if (const auto wake = plan_.WakeAt()) runner_.RunIn(*wake - Now());
      return std::nullopt;
    }
    Call call{.index = outgoing->request};
    *call.request.mutable_worker() = identity_;
    call.request.set_version(outgoing->version.value());
    call.request.set_averages(averages_);
    call.request.set_in_memory(outgoing->in_memory);
    if (outgoing->is_narrow) call.request.set_wire_type(ToProto(wire_type_));
    for (const PullPlan::Piece& piece : plan_.pieces(outgoing->request)) {
      Describe(targets_[piece.target], piece, UnitBytes(outgoing->is_narrow),
               call.request.add_pieces());
    }
    call.is_narrow = outgoing->is_narrow;
    return call;
  }

  void Send(Call call, std::shared_ptr<Gate::Pass> hold) {
    ps_->Pull(call.request,
              [this, index = call.index, is_narrow = call.is_narrow,
               hold = std::move(hold)](absl::StatusOr<std::unique_ptr<PulledValues>> values) {
                absl::Status status = values.status();
                // Nobody else touches the targets of a request in flight.
                if (status.ok()) status = CopyToTargets(index, is_narrow, **values);
                {
                  absl::MutexLock lock(&mutex_);
                  if (status.ok()) {
                    plan_.OnReply(index, GlobalStep((*values)->header().version()));
                    in_place_[index] = StaysInPlace(index, **values) ? *std::move(values) : nullptr;
                  } else if (values.ok() && absl::IsAborted(status)) {
                    plan_.OnOverwritten(index);
                  } else {
                    plan_.OnError(index, status, Now());
                  }
                }
                runner_.Run();
              });
  }

  bool StaysInPlace(size_t index, const PulledValues& values) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !values.in_place().empty() &&
           std::ranges::any_of(plan_.pieces(index), [this](const PullPlan::Piece& piece) {
             mutex_.AssertHeld();
             return targets_[piece.target].in_place;
           });
  }

  // Targets and the pieces of a request stay as they are during a fetch, so reading them needs no
  // lock.
  absl::Status CopyToTargets(size_t index, bool is_narrow,
                             const PulledValues& values) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const std::vector<PullPlan::Piece>& pieces = plan_.pieces(index);
    const PullReply& header = values.header();
    bool matches = header.pieces_size() == static_cast<int>(pieces.size());
    std::vector<std::span<std::byte>> memory;
    std::vector<std::span<float>> elements;
    for (size_t i = 0; matches && i < pieces.size(); ++i) {
      const PullTarget& target = targets_[pieces[i].target];
      matches =
          Answers(header.pieces(static_cast<int>(i)), target, pieces[i], UnitBytes(is_narrow));
      if (is_narrow) {
        elements.push_back(target.value.as<float>().subspan(pieces[i].first, pieces[i].count));
        continue;
      }
      const bool stays = target.in_place && !values.in_place().empty();
      memory.push_back(stays ? std::span<std::byte>() : MemoryOf(target, pieces[i]));
    }
    if (!matches)
      return absl::InternalError("pull was answered with pieces that were not asked for");
    return is_narrow ? values.WidenTo(wire_type_, elements) : values.CopyTo(memory);
  }

  PsData* const ps_;  // outlives the puller
  const WorkerIdentity identity_;
  const DType wire_type_;
  const bool averages_;
  mutable absl::Mutex mutex_;
  std::vector<PullTarget> targets_ ABSL_GUARDED_BY(mutex_);  // changed between fetches only
  std::vector<PullPlan::Extent> extents_ ABSL_GUARDED_BY(mutex_);
  // By request: the answer, where it is in the ps's memory; otherwise null.
  std::vector<std::unique_ptr<PulledValues>> in_place_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<PulledValues>> kept_ ABSL_GUARDED_BY(mutex_);  // of the fetch before
  // By target: where the ps's memory has all of it; otherwise null.
  std::vector<const std::byte*> shown_ ABSL_GUARDED_BY(mutex_);
  PullPlan plan_ ABSL_GUARDED_BY(mutex_);
  GlobalStep asked_ ABSL_GUARDED_BY(mutex_);  // the version
  bool shares_values_ ABSL_GUARDED_BY(mutex_) = false;
  Done<GlobalStep> done_ ABSL_GUARDED_BY(mutex_);  // while a fetch is under way
  SerialRunner runner_;
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

const void* VariablePuller::Value(size_t target) const { return impl_->Value(target); }

}  // namespace lockstep
