#include "worker/collective/schedule_builder.h"

#include "common/base/check.h"

namespace lockstep::worker {

ScheduleBuilder::ScheduleBuilder(int num_participants, size_t length) : tick_(num_participants) {
  schedule_.length_ = length;
  schedule_.participants_.resize(num_participants);
}

void ScheduleBuilder::Append(const Operation& operation, absl::Span<const Term> terms,
                             Schedule::Operations* to) {
  Operation& own = to->operations.emplace_back(operation);
  own.first_term = to->terms.size();
  own.num_terms = terms.size();
  to->terms.insert(to->terms.end(), terms.begin(), terms.end());
}

int ScheduleBuilder::AddSend(int from, int to, ElementRange range) {
  LOCKSTEP_CHECK(from != to && range.first + range.count <= schedule_.length_);
  const int message = messages_[{from, to}]++;
  const Term term = {to, message};
  Append({Operation::Kind::kSend, false, range}, {&term, 1}, &tick_[from].sends);
  return message;
}

void ScheduleBuilder::Sum(int at, ElementRange range, absl::Span<const int> terms, bool is_total) {
  if (range.count == 0) return;
  const bool is_own_alone = terms.size() == 1 && terms[0] == at;
  if (is_own_alone && !is_total) return;
  std::vector<Term> received;
  for (const int rank : terms) {
    received.push_back({rank, rank == at ? -1 : AddSend(rank, at, range)});
  }
  Append({Operation::Kind::kSum, is_total, range}, received, &tick_[at].others);
}

void ScheduleBuilder::Copy(int from, int to, ElementRange range) {
  if (range.count == 0 || from == to) return;
  const Term term = {from, AddSend(from, to, range)};
  Append({Operation::Kind::kReceive, false, range}, {&term, 1}, &tick_[to].others);
}

void ScheduleBuilder::EndTick() {
  for (size_t rank = 0; rank < tick_.size(); ++rank) {
    for (const Schedule::Operations& part : {tick_[rank].sends, tick_[rank].others}) {
      for (const Operation& operation : part.operations) {
        Append(operation,
               absl::MakeConstSpan(part.terms).subspan(operation.first_term, operation.num_terms),
               &schedule_.participants_[rank]);
      }
    }
    tick_[rank] = Tick();
  }
}

void ScheduleBuilder::AppendAsIs(int rank, const Operation& operation,
                                 absl::Span<const Term> terms) {
  Append(operation, terms, &schedule_.participants_[rank]);
}

Schedule ScheduleBuilder::Finish() {
  EndTick();
  return std::move(schedule_);
}

}  // namespace lockstep::worker
