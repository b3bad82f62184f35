#include "ps/shard/unread_versions.h"

#include <utility>

#include "common/base/limits.h"
#include "common/tensor/half_width.h"

namespace lockstep::ps {
namespace {

// A value that unread replies keep. Its bytes count while this exists.
class CountedValue {
 public:
  CountedValue(std::shared_ptr<const Tensor> value, std::shared_ptr<std::atomic<uint64_t>> count)
      : value_(std::move(value)), count_(std::move(count)) {
    count_->fetch_add(value_->num_bytes(), std::memory_order_relaxed);
  }
  ~CountedValue() { count_->fetch_sub(value_->num_bytes(), std::memory_order_relaxed); }
  CountedValue(const CountedValue&) = delete;
  CountedValue& operator=(const CountedValue&) = delete;

 private:
  const std::shared_ptr<const Tensor> value_;
  const std::shared_ptr<std::atomic<uint64_t>> count_;
};

}  // namespace

std::shared_ptr<const void> CountBytes(std::shared_ptr<std::atomic<uint64_t>> count,
                                       uint64_t bytes) {
  count->fetch_add(bytes, std::memory_order_relaxed);
  std::atomic<uint64_t>* const counted = count.get();
  return std::shared_ptr<const void>(counted, [count = std::move(count), bytes](const void*) {
    count->fetch_sub(bytes, std::memory_order_relaxed);
  });
}

UnreadVersions::UnreadVersions(size_t num_variables, std::shared_ptr<std::atomic<uint64_t>> copied)
    : kept_(num_variables),
      copied_(std::move(copied)),
      kept_bytes_(std::make_shared<std::atomic<uint64_t>>(0)) {}

std::shared_ptr<const Tensor> UnreadVersions::Keep(size_t variable, GlobalStep version,
                                                   std::shared_ptr<const Tensor> value) {
  Kept& kept = kept_[variable];
  const bool is_narrow = IsHalfWidth(value->dtype());
  KeptValue& same_width = is_narrow ? kept.narrow : kept.wide;
  const KeptValue& other_width = is_narrow ? kept.wide : kept.narrow;
  if (kept.version != version && !other_width.value.expired()) return nullptr;
  std::shared_ptr<const Tensor> unread = same_width.value.lock();
  if (unread != nullptr && unread != value) return nullptr;
  if (unread == nullptr) {
    // Replies share this pointer. It goes with the last of them.
    const Tensor* const tensor = value.get();
    unread = std::shared_ptr<const Tensor>(
        std::make_shared<const CountedValue>(std::move(value), kept_bytes_), tensor);
    same_width = {unread, tensor->num_bytes()};
  }
  // A variable that rests has the same value in several versions.
  kept.version = version;
  return unread;
}

uint64_t UnreadVersions::SumKept(
    absl::FunctionRef<bool(size_t variable, GlobalStep version)> counts) const {
  uint64_t sum = 0;
  for (size_t variable = 0; variable < kept_.size(); ++variable) {
    const Kept& kept = kept_[variable];
    for (const KeptValue* const of : {&kept.wide, &kept.narrow}) {
      // Not locked: the last owner frees the value, and that takes its time.
      if (!of->value.expired() && counts(variable, kept.version)) sum += of->bytes;
    }
  }
  return sum;
}

std::shared_ptr<const void> UnreadVersions::PinCopy(uint64_t bytes) {
  const uint64_t unread = copied_bytes();
  const bool has_room =
      unread <= limits::kMaxUnreadCopyBytes && bytes <= limits::kMaxUnreadCopyBytes - unread;
  return has_room ? CountBytes(copied_, bytes) : nullptr;
}

std::shared_ptr<const void> UnreadVersions::PinOnlyCopy(uint64_t bytes) {
  const bool is_first = copied_bytes() == 0;
  return is_first ? CountBytes(copied_, bytes) : PinCopy(bytes);
}

}  // namespace lockstep::ps
