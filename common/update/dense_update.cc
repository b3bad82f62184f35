#include "common/update/dense_update.h"

#include <algorithm>
#include <utility>

#include "common/tensor/element_math.h"

namespace lockstep {
namespace {

static_assert(DenseUpdate::kRangeBytes / sizeof(double) % kRangeStep == 0);

// Beyond this, a value has left the caches before anybody reads it.
constexpr size_t kCachedBytes = size_t{16} << 20;

// Of each gradient that is copied together for one block.
constexpr size_t kBlockElements = 4096;
static_assert(kBlockElements % kRangeStep == 0);

// Memory for blocks of so many gradients, one after the other.
std::byte* BlocksOfThread(size_t num_gradients, size_t block_bytes) {
  thread_local Tensor blocks;
  const size_t needed = num_gradients * block_bytes;
  if (blocks.num_bytes() < needed) {
    blocks = Tensor(DType::kUInt8, Shape({static_cast<int64_t>(needed)}));
  }
  return static_cast<std::byte*>(blocks.data());
}

}  // namespace

DenseUpdate::DenseUpdate(GlobalStep step, float learning_rate, const UpdateRule& rule,
                         absl::Span<const float> scalars, Variable* variable)
    : step_(step),
      learning_rate_(learning_rate),
      rule_(&rule),
      scalars_(scalars),
      variable_(variable),
      next_(variable->TakeBuffer()),
      narrow_(variable->TakeNarrowBuffer()) {}

void DenseUpdate::SetGradients(GradientSources gradients, int divisor) {
  gradients_ = std::move(gradients);
  divisor_ = divisor;
  for (size_t range = 0; range < is_early_.size(); ++range) {
    if (!is_early_[range]) ranges_.push_back(range);
  }
}

size_t DenseUpdate::num_ranges() const {
  return std::max<size_t>(1, is_early_.empty() ? NumRanges(num_bytes()) : ranges_.size());
}

ElementRange DenseUpdate::ElementsOf(size_t range) const {
  const size_t in_range = RangeElements(variable_->dtype());
  const size_t begin = range * in_range;
  const auto all = static_cast<size_t>(variable_->shape().num_elements());
  return {begin, std::min(in_range, all - begin)};
}

void DenseUpdate::Make(size_t range) {
  if (is_early_.empty()) return MakeRange(ElementsOf(range), gradients_, divisor_);
  if (range < ranges_.size()) MakeRange(ElementsOf(ranges_[range]), gradients_, divisor_);
}

void DenseUpdate::MakeRange(ElementRange range, absl::Span<const GradientSource> gradients,
                            int divisor) {
  const size_t size = SizeOf(variable_->dtype());
  variable_->BeforeWriteSlots({range.first * size, (range.first + range.count) * size});
  if (std::ranges::any_of(gradients, [](const auto& of) { return of.parts != nullptr; })) {
    return MakeFromParts(range, gradients, divisor);
  }
  Views views;
  for (const GradientSource& gradient : gradients) views.push_back(gradient.view);
  Apply(range, views, 0, divisor);
}

void DenseUpdate::MakeFromParts(ElementRange range, absl::Span<const GradientSource> gradients,
                                int divisor) {
  const size_t block_bytes = kBlockElements * SizeOf(variable_->dtype());
  std::byte* const blocks = BlocksOfThread(gradients.size(), block_bytes);
  for (size_t done = 0; done < range.count; done += kBlockElements) {
    const ElementRange block{range.first + done, std::min(kBlockElements, range.count - done)};
    const Shape shape({static_cast<int64_t>(block.count)});
    Views views;
    for (const GradientSource& gradient : gradients) {
      const DType dtype = gradient.view.dtype;
      if (gradient.parts == nullptr) {
        const auto* const data = static_cast<const std::byte*>(gradient.view.data);
        views.push_back({dtype, shape, data + block.first * SizeOf(dtype)});
        continue;
      }
      std::byte* const copy = blocks + views.size() * block_bytes;
      gradient.parts->Copy(block.first, block.count, copy);
      views.push_back({dtype, shape, copy});
    }
    Apply(block, views, block.first, divisor);
  }
}

void DenseUpdate::Apply(ElementRange range, const Views& gradients, size_t gradients_begin,
                        int divisor) {
  Update update{.old_value = variable_->newest()->view(),
                .gradients = gradients,
                .gradients_begin = gradients_begin,
                .divisor = divisor,
                .new_value = next_->tensor.view(),
                .slots = variable_->slots(),
                .learning_rate = learning_rate_,
                .scalars = scalars_,
                .version = step_.next().value(),
                .range = range,
                .bypasses_caches = num_bytes() > kCachedBytes,
                .narrow_value = narrow_ == nullptr ? MutableTensorView() : narrow_->tensor.view()};
  Views mean;
  if (mean_.data != nullptr) {
    TakeMean(update, range,
             static_cast<std::byte*>(mean_.data) + range.first * SizeOf(variable_->dtype()));
    mean.push_back(mean_);
    update.gradients = mean;
    update.gradients_begin = 0;
    update.divisor = 1;
  }
  if (variable_->trainable()) {
    rule_->Apply(update);
  } else {
    std::byte* const mean =
        static_cast<std::byte*>(next_->tensor.data()) + range.first * SizeOf(variable_->dtype());
    TakeMean(update, range, mean);
    WriteNarrow(update, range, mean);
  }
}

NextValue DenseUpdate::Finish() {
  gradients_.clear();
  return variable_->Finish(std::move(next_), std::move(narrow_));
}

bool DenseUpdate::ClaimEarly(size_t range) {
  if (is_early_.empty()) is_early_.resize(NumRanges(num_bytes()));
  if (is_early_[range]) return false;
  is_early_[range] = true;
  return true;
}

ByteRange DenseUpdate::BytesOf(size_t range) const {
  return {range * kRangeBytes, std::min((range + 1) * kRangeBytes, num_bytes())};
}

void DenseUpdate::MakeEarly(size_t range, absl::Span<const GradientSource> gradients) {
  MakeRange(ElementsOf(range), gradients, static_cast<int>(gradients.size()));
}

NextValue DenseUpdate::Unfinished() const {
  const auto shown = [](const std::shared_ptr<ValueBuffer>& buffer) {
    return buffer == nullptr ? nullptr : std::shared_ptr<const Tensor>(buffer, &buffer->tensor);
  };
  return {shown(next_), shown(narrow_)};
}

}  // namespace lockstep
