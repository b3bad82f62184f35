#include "worker/strategy/replicated/member_state_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/exit_code.h"

namespace lockstep::worker {
namespace {

// A link of 53 KB/s carries one within the 5 s that a member has to answer.
constexpr uint64_t kPiece = uint64_t{256} << 10;
// A member may still be on its way to the version.
constexpr absl::Duration kPause = absl::Milliseconds(20);
// One that hangs is lost before, and then there is another group.
constexpr absl::Duration kPatience = absl::Seconds(15);

// A connection that breaks has many names. CANCELLED: the group has ended, with all connections.
bool MayHelp(const absl::Status& status) {
  return !status.ok() && !absl::IsAborted(status) && !absl::IsInvalidArgument(status) &&
         !absl::IsCancelled(status);
}

absl::Status NobodyHas(const absl::Status& last) {
  return WithExitCode(absl::UnavailableError(absl::StrCat(
                          "no member of the group had the variables for this worker within ",
                          absl::FormatDuration(kPatience), ", the last one said: ", last.message(),
                          ". Remedy: start it again")),
                      ExitCode::kPeersLost);
}

}  // namespace

MemberStateReader::MemberStateReader(const VariableLayout& layout, const OptimizerRules& rules,
                                     Timer* timer, const Clock* clock, TensorMaker make_tensor)
    : layout_(layout),
      rules_(rules),
      timer_(timer),
      clock_(clock),
      make_tensor_(std::move(make_tensor)),
      gate_(std::make_shared<Gate>()) {}

MemberStateReader::~MemberStateReader() {
  Cancel();
  gate_->Close();
}

void MemberStateReader::Read(GlobalStep version, MemberStates* states, std::vector<int> members,
                             Callback<ReplicaState> done) {
  Callback<ReplicaState> refused;
  {
    absl::MutexLock lock(&mutex_);
    if (is_cancelled_) {
      refused = std::move(done);
    } else {
      ++read_;
      states_ = states;
      members_ = std::move(members);
      member_ = 0;
      offset_ = 0;
      deadline_ = clock_->Monotonic() + kPatience;
      state_ = UninitializedState(layout_, rules_, make_tensor_);
      state_.version = version;
      tensors_ = TensorsOf(&state_);
      done_ = std::move(done);
    }
  }
  if (refused) return refused(absl::CancelledError("training was cancelled"));
  ReadNext();
}

void MemberStateReader::ReadNext() {
  auto pass = std::make_shared<Gate::Pass>(gate_->Enter());
  if (!*pass) return;
  MemberStates* states = nullptr;
  int member = 0;
  uint64_t read = 0;
  uint64_t offset = 0;
  GlobalStep version;
  {
    absl::MutexLock lock(&mutex_);
    if (!done_ || end_.has_value()) return;
    ++calls_;
    states = states_;
    member = members_[member_];
    read = read_;
    offset = offset_;
    version = state_.version;
  }
  states->ReadState(
      member, version, offset, kPiece,
      [this, pass, read](absl::StatusOr<StatePiece> piece) { OnPiece(read, std::move(piece)); });
  {
    absl::MutexLock lock(&mutex_);
    --calls_;
  }
  TellEnd();
}

void MemberStateReader::OnPiece(uint64_t read, absl::StatusOr<StatePiece> piece) {
  absl::Status status = piece.status();
  bool is_whole = false;
  bool is_late = false;
  {
    absl::MutexLock lock(&mutex_);
    if (read != read_ || !done_ || end_.has_value()) return;
    if (status.ok()) {
      status = Take(*piece);
      deadline_ = clock_->Monotonic() + kPatience;
      is_whole = status.ok() && offset_ == piece->total;
    } else if (MayHelp(status)) {
      member_ = (member_ + 1) % members_.size();
      offset_ = 0;
      is_late = clock_->Monotonic() >= deadline_;
    }
  }
  if (is_late) return End(read, NobodyHas(status));
  if (status.ok()) return is_whole ? End(read, absl::OkStatus()) : ReadNext();
  if (!MayHelp(status)) return End(read, std::move(status));
  timer_->After(kPause, [this, gate = gate_] {
    if (const Gate::Pass inside = gate->Enter()) ReadNext();
  });
}

absl::Status MemberStateReader::Take(const StatePiece& piece) {
  const std::vector<TensorView> tensors(tensors_.begin(), tensors_.end());
  const uint64_t expected = NumBytes(tensors);
  const bool is_there = !piece.bytes.empty() || expected == offset_;
  if (piece.total != expected || !is_there || !WriteBytes(tensors_, offset_, piece.bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("state of version ", state_.version.value(), ": expected ", expected,
                     " bytes of variables and slots, a member of the group has ", piece.total,
                     " and sent ", piece.bytes.size(), " from byte ", offset_,
                     ". Remedy: run the same version of the program everywhere"));
  }
  offset_ += piece.bytes.size();
  state_.scalars = piece.scalars;
  return absl::OkStatus();
}

void MemberStateReader::End(uint64_t read, absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    if (read != read_ || !done_ || end_.has_value()) return;
    end_ = std::move(status);
  }
  TellEnd();
}

void MemberStateReader::TellEnd() {
  absl::Status status;
  Callback<ReplicaState> done;
  ReplicaState state;
  {
    absl::MutexLock lock(&mutex_);
    if (!end_.has_value() || calls_ > 0) return;
    status = *std::exchange(end_, std::nullopt);
    done = std::exchange(done_, nullptr);
    state = std::move(state_);
    tensors_.clear();
  }
  if (!status.ok()) return done(std::move(status));
  done(std::move(state));
}

void MemberStateReader::Cancel() {
  uint64_t read = 0;
  {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    read = read_;
  }
  End(read, absl::CancelledError("training was cancelled"));
}

}  // namespace lockstep::worker
