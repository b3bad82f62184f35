#include "common/transport/grpc_shm/mapped_values.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/status_macros.h"
#include "common/tensor/seq_lock.h"

namespace lockstep {
namespace {

// What the references of one reply look at.
struct Mapped {
  std::shared_ptr<const shm::Segment> memory;
  std::deque<std::vector<int64_t>> rows;  // of the pieces that have some
};

bool LiesIn(std::span<const std::byte> memory, uint64_t place, uint64_t size) {
  return size <= memory.size() && place <= memory.size() - size;
}

// A ps with so much memory for its values, three times what they take, has more of them than a
// cache keeps until they are read.
constexpr uint64_t kCachedMemory = 3 * (uint64_t{16} << 20);

// Bytes from the piece's place to the end of what is read. nullopt: no such rows.
std::optional<uint64_t> BytesRead(const PullPiece& asked, const PullPiece& answered) {
  if (asked.rows_size() == 0) return answered.size();
  const auto num_rows = static_cast<uint64_t>(asked.rows_size());
  const auto [lowest, highest] = std::ranges::minmax(asked.rows());
  const std::optional<int64_t> end = CheckedAdd(highest, 1);
  const auto row_bytes = static_cast<int64_t>(answered.size() / num_rows);
  const auto last = end ? CheckedMultiply(*end, row_bytes) : std::nullopt;
  if (lowest < 0 || !last.has_value() || answered.size() % num_rows != 0) return std::nullopt;
  return static_cast<uint64_t>(*last);
}

absl::Status Outside(const PullPiece& asked, const PullPiece& answered, uint64_t memory_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", answered.variable(), ": ", answered.size(), " bytes, of ",
                   asked.rows_size(), " rows, at ", answered.place(), ", stamp at ",
                   answered.stamp(), " in a memory of ", memory_bytes));
}

}  // namespace

absl::StatusOr<ReceivedTensors> MappedValues(const PullRequest& request, const PullReply& reply,
                                             std::shared_ptr<const shm::Segment> memory) {
  if (reply.pieces_size() != request.pieces_size()) {
    return absl::InvalidArgumentError(absl::StrCat("asked for ", request.pieces_size(),
                                                   " pieces, answered with ", reply.pieces_size()));
  }
  const std::span<const std::byte> bytes = memory->bytes();
  const auto mapped = std::make_shared<Mapped>(Mapped{std::move(memory), {}});
  std::vector<ReceivedTensors::Reference> references;
  std::vector<const SeqLock*> seq_locks;
  references.reserve(reply.pieces_size());
  seq_locks.reserve(reply.pieces_size());
  for (int i = 0; i < reply.pieces_size(); ++i) {
    const PullPiece& asked = request.pieces(i);
    const PullPiece& answered = reply.pieces(i);
    const std::optional<uint64_t> read = BytesRead(asked, answered);
    const bool fits = read.has_value() && LiesIn(bytes, answered.place(), *read) &&
                      answered.stamp() % alignof(SeqLock) == 0 &&
                      LiesIn(bytes, answered.stamp(), SeqLock::kRoom);
    if (!fits) return Outside(asked, answered, bytes.size());
    references.push_back({.values = bytes.subspan(answered.place(), *read),
                          .size = answered.size(),
                          .is_cached = bytes.size() <= kCachedMemory});
    if (asked.rows_size() > 0) {
      references.back().rows = mapped->rows.emplace_back(asked.rows().begin(), asked.rows().end());
    }
    seq_locks.push_back(reinterpret_cast<const SeqLock*>(bytes.data() + answered.stamp()));
  }
  const auto check = [seq_locks = std::move(seq_locks), version = reply.version()] {
    for (const SeqLock* seq_lock : seq_locks) {
      if (seq_lock->StillHolds(version)) continue;
      return absl::AbortedError(
          absl::StrCat("version ", version, " was written over while it was being read"));
    }
    return absl::OkStatus();
  };
  return ReceivedTensors(std::move(references), mapped, check);
}

}  // namespace lockstep
