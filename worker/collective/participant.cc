#include "worker/collective/participant.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/sum_of_terms.h"
#include "worker/collective/first_reads.h"

namespace lockstep::worker {
namespace {

// Sums of many terms, and quotients, are made of blocks that stay in the first cache.
constexpr size_t kBlockBytes = size_t{16} << 10;

// terms[k] = terms[k] + count elements.
void Advance(size_t bytes, std::vector<TensorView>* terms) {
  for (TensorView& term : *terms) term.data = static_cast<const std::byte*>(term.data) + bytes;
}

// `to` may be the memory of a term.
void SumInBlocks(std::vector<TensorView>* terms, size_t count, int divisor, std::byte* to) {
  const size_t size = SizeOf((*terms)[0].dtype);
  const size_t block = kBlockBytes / size;
  alignas(Tensor::kAlignment) std::array<std::byte, kBlockBytes> sum;
  // SumAndDivide may write to one of the first terms, but to none that it reads later.
  const bool is_in_place = terms->size() <= kTermsAtATime;
  for (size_t first = 0; first < count; first += block) {
    const size_t now = std::min(block, count - first);
    SumAndDivide(*terms, divisor, {0, now}, is_in_place ? to : sum.data());
    if (!is_in_place) std::memcpy(to, sum.data(), now * size);
    to += now * size;
    Advance(now * size, terms);
  }
}

}  // namespace

Participant::Participant(const Schedule* schedule, int rank, const MutableTensorView& vector,
                         int divisor)
    : schedule_(schedule),
      rank_(rank),
      operations_(schedule->operations(rank)),
      first_reads_(FindFirstReads(*schedule, rank)),
      vector_(vector),
      divisor_(divisor) {
  size_t sends = 0;
  size_t terms = 0;
  for (const Operation& operation : operations_) {
    if (operation.kind == Operation::Kind::kSend) ++sends;
    terms = std::max(terms, operation.num_terms);
  }
  open_.reserve(sends);
  messages_.reserve(terms);
  terms_.reserve(terms);
  Restart(vector, divisor);
}

void Participant::Restart(const MutableTensorView& vector, int divisor, const void* first) {
  LOCKSTEP_CHECK(open_.empty() && (next_ == 0 || next_ == operations_.size()));
  LOCKSTEP_CHECK(static_cast<size_t>(vector.num_elements()) == schedule_->length());
  LOCKSTEP_CHECK(HasElementMath(vector.dtype) && divisor >= 1);
  LOCKSTEP_CHECK(first == nullptr || MayBeginElsewhere());
  vector_ = vector;
  divisor_ = divisor;
  first_ = first == vector.data ? nullptr : static_cast<const std::byte*>(first);
  next_ = 0;
  received_ = 0;
}

Participant::Action Participant::Next() {
  while (next_ < operations_.size()) {
    const Operation& operation = operations_[next_];
    const absl::Span<const Term> terms = schedule_->terms(rank_, operation);
    if (operation.kind == Operation::Kind::kSend) {
      const std::byte* const elements = OwnAt(operation.range.first);
      open_.push_back({terms[0], operation.range, /*is_in_vector=*/!ReadsFirst()});
      ++next_;
      const Shape shape({static_cast<int64_t>(operation.range.count)});
      return {.kind = Action::Kind::kSend,
              .to = terms[0],
              .elements = {vector_.dtype, shape, elements}};
    }
    if (IsBeingSent(operation.range)) return {.kind = Action::Kind::kWaitForSends};
    FindMessages(operation);
    if (!messages_.empty()) {
      return {.kind = Action::Kind::kReceive,
              .messages = messages_,
              .range = operation.range,
              .received = received_,
              .is_copy = operation.kind == Operation::Kind::kReceive};
    }
    AddPart(operation, {}, operation.range.count);
    FinishOperation();
  }
  return {.kind = open_.empty() ? Action::Kind::kDone : Action::Kind::kWaitForSends};
}

void Participant::OnReceived(absl::Span<const void* const> elements, size_t count) {
  LOCKSTEP_CHECK(next_ < operations_.size());
  const Operation& operation = operations_[next_];
  LOCKSTEP_CHECK(!messages_.empty() && elements.size() == messages_.size());
  LOCKSTEP_CHECK(count <= operation.range.count - received_);
  if (operation.kind == Operation::Kind::kReceive) {
    std::memcpy(At(operation.range.first + received_), elements[0], count * SizeOf(vector_.dtype));
  } else {
    AddPart(operation, elements, count);
  }
  received_ += count;
  if (received_ == operation.range.count) FinishOperation();
}

void Participant::OnSent(const Term& to) {
  const auto sent = std::ranges::find(open_, to, &OpenSend::to);
  LOCKSTEP_CHECK(sent != open_.end());
  *sent = open_.back();
  open_.pop_back();
}

bool Participant::IsBeingSent(const ElementRange& range) const {
  return std::ranges::any_of(open_, [&](const OpenSend& send) {
    return send.is_in_vector && send.range.first < range.first + range.count &&
           range.first < send.range.first + send.range.count;
  });
}

void Participant::FindMessages(const Operation& operation) {
  messages_.clear();
  for (const Term& term : schedule_->terms(rank_, operation)) {
    if (term.message >= 0) messages_.push_back(term);
  }
}

void Participant::AddPart(const Operation& operation, absl::Span<const void* const> elements,
                          size_t count) {
  if (count == 0) return;
  const Shape shape({static_cast<int64_t>(count)});
  const size_t begin = operation.range.first + received_;
  const std::byte* const own = OwnAt(begin);
  std::byte* const to = At(begin);
  size_t message = 0;
  terms_.clear();
  for (const Term& term : schedule_->terms(rank_, operation)) {
    const void* const from = term.message < 0 ? own : elements[message++];
    terms_.push_back({vector_.dtype, shape, from});
  }
  const int divisor = operation.is_total ? divisor_ : 1;
  if (terms_.size() == 1 && divisor == 1 && message == 0) {
    if (own != to) std::memcpy(to, own, count * SizeOf(vector_.dtype));
    return;
  }
  SumInBlocks(&terms_, count, divisor, to);
}

void Participant::FinishOperation() {
  ++next_;
  received_ = 0;
  messages_.clear();
}

const std::byte* Participant::OwnAt(size_t element) const {
  return ReadsFirst() ? first_ + element * SizeOf(vector_.dtype) : At(element);
}

std::byte* Participant::At(size_t element) const {
  return static_cast<std::byte*>(vector_.data) + element * SizeOf(vector_.dtype);
}

}  // namespace lockstep::worker
