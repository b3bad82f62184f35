#include "worker/collective/split_messages.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/collective/schedule_builder.h"

namespace lockstep::worker {
namespace {

using OperationKind = Operation::Kind;
using Operations = absl::Span<const Operation>;

bool AreEqual(const ElementRange& a, const ElementRange& b) {
  return a.first == b.first && a.count == b.count;
}

bool Overlap(const ElementRange& a, const ElementRange& b) {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

class Splitter {
 public:
  Splitter(const Schedule& schedule, size_t max_elements)
      : schedule_(schedule), max_elements_(max_elements) {
    for (int from = 0; from < schedule.num_participants(); ++from) NumberPieces(from);
  }

  // Of `rank`, in their order.
  void Write(int rank, ScheduleBuilder* builder) {
    const Operations operations = schedule_.operations(rank);
    for (size_t next = 0; next < operations.size();) {
      const size_t receives = CountReceives(operations.subspan(next));
      const size_t sends = CountSends(operations.subspan(next + receives));
      WriteRun(rank, operations.subspan(next, receives), operations.subspan(next + receives, sends),
               builder);
      next += receives + sends;
    }
  }

 private:
  size_t NumPieces(const ElementRange& range) const {
    return (range.count + max_elements_ - 1) / max_elements_;
  }

  // first_pieces_[{from, to}][m]: which message the first piece of message m becomes.
  void NumberPieces(int from) {
    std::map<int, int> counts;
    for (const Operation& operation : schedule_.operations(from)) {
      if (operation.kind != OperationKind::kSend) continue;
      const Term to = schedule_.terms(from, operation)[0];
      std::vector<int>& firsts = first_pieces_[{from, to.rank}];
      LOCKSTEP_CHECK(firsts.size() == static_cast<size_t>(to.message));
      firsts.push_back(counts[to.rank]);
      counts[to.rank] += static_cast<int>(NumPieces(operation.range));
    }
  }

  // Sums and copies at the beginning that touch different elements.
  static size_t CountReceives(Operations operations) {
    size_t count = 0;
    for (; count < operations.size() && operations[count].kind != OperationKind::kSend; ++count) {
      const bool is_apart = std::ranges::none_of(operations.first(count), [&](const Operation& o) {
        return Overlap(o.range, operations[count].range);
      });
      if (!is_apart) break;
    }
    return count;
  }

  static size_t CountSends(Operations operations) {
    const auto end = std::ranges::find_if(operations, [](const Operation& operation) {
      return operation.kind != OperationKind::kSend;
    });
    return static_cast<size_t>(end - operations.begin());
  }

  void WriteRun(int rank, Operations receives, Operations sends, ScheduleBuilder* builder) {
    const auto is_of_run = [&](const Operation& send) {
      return std::ranges::any_of(
          receives, [&](const Operation& receive) { return AreEqual(receive.range, send.range); });
    };
    size_t pieces = 0;
    for (const Operation& receive : receives) pieces = std::max(pieces, NumPieces(receive.range));
    for (size_t piece = 0; piece < pieces; ++piece) {
      for (const Operation& receive : receives) WritePiece(rank, receive, piece, builder);
      for (const Operation& send : sends) {
        if (is_of_run(send)) WritePiece(rank, send, piece, builder);
      }
    }
    // In the order in which the receiver uses them: it adds a piece of each range in turn, and
    // takes a few messages beyond the one that it uses, no more.
    for (const Operation& send : sends) pieces = std::max(pieces, NumPieces(send.range));
    for (size_t piece = 0; piece < pieces; ++piece) {
      for (const Operation& send : sends) {
        if (!is_of_run(send)) WritePiece(rank, send, piece, builder);
      }
    }
  }

  void WritePiece(int rank, Operation operation, size_t piece, ScheduleBuilder* builder) {
    if (piece >= NumPieces(operation.range)) return;
    const absl::Span<const Term> terms = schedule_.terms(rank, operation);
    terms_.assign(terms.begin(), terms.end());
    for (Term& term : terms_) {
      if (term.message < 0) continue;
      const bool is_send = operation.kind == OperationKind::kSend;
      const auto stream = is_send ? std::pair(rank, term.rank) : std::pair(term.rank, rank);
      term.message = first_pieces_.at(stream)[term.message] + static_cast<int>(piece);
    }
    operation.range.first += piece * max_elements_;
    operation.range.count = std::min(operation.range.count - piece * max_elements_, max_elements_);
    builder->AppendAsIs(rank, operation, terms_);
  }

  const Schedule& schedule_;
  const size_t max_elements_;
  std::map<std::pair<int, int>, std::vector<int>> first_pieces_;
  std::vector<Term> terms_;
};

}  // namespace

Schedule SplitMessages(const Schedule& schedule, size_t max_elements) {
  LOCKSTEP_CHECK(max_elements > 0);
  ScheduleBuilder builder(schedule.num_participants(), schedule.length());
  Splitter splitter(schedule, max_elements);
  for (int rank = 0; rank < schedule.num_participants(); ++rank) splitter.Write(rank, &builder);
  return builder.Finish();
}

}  // namespace lockstep::worker
