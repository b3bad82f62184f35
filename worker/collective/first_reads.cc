#include "worker/collective/first_reads.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace lockstep::worker {
namespace {

// Elements that have been written, as ranges that do not touch.
class WrittenElements {
 public:
  // How many of the range.
  size_t CountIn(const ElementRange& range) const {
    const size_t end = range.first + range.count;
    size_t count = 0;
    for (auto next = FirstEndingAfter(range.first); next != ends_.end() && next->first < end;
         ++next) {
      count += std::min(next->second, end) - std::max(next->first, range.first);
    }
    return count;
  }

  void Add(const ElementRange& range) {
    size_t begin = range.first;
    size_t end = range.first + range.count;
    auto next = ends_.lower_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_.emplace(begin, end);
  }

 private:
  std::map<size_t, size_t>::const_iterator FirstEndingAfter(size_t element) const {
    const auto next = ends_.upper_bound(element);
    if (next == ends_.begin() || std::prev(next)->second <= element) return next;
    return std::prev(next);
  }

  std::map<size_t, size_t> ends_;  // by beginning
};

bool ReadsOwn(absl::Span<const Term> terms, const Operation& operation) {
  return operation.kind == Operation::Kind::kSend ||
         std::ranges::any_of(terms, [](const Term& term) { return term.message < 0; });
}

}  // namespace

std::optional<std::vector<bool>> FindFirstReads(const Schedule& schedule, int rank) {
  std::vector<bool> first_reads;
  WrittenElements written;
  for (const Operation& operation : schedule.operations(rank)) {
    const size_t count = written.CountIn(operation.range);
    const bool reads = ReadsOwn(schedule.terms(rank, operation), operation);
    if (reads && count > 0 && count < operation.range.count) return std::nullopt;
    first_reads.push_back(reads && count == 0);
    if (operation.kind != Operation::Kind::kSend) written.Add(operation.range);
  }
  if (written.CountIn({0, schedule.length()}) < schedule.length()) return std::nullopt;
  return first_reads;
}

}  // namespace lockstep::worker
