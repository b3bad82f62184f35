#include "worker/data/buffer_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"

namespace lockstep::worker {

MemoryNeed NeedOf(const BufferMemory& buffers) {
  const auto examples = CheckedMultiplyBytes(buffers.buffers, buffers.examples);
  const auto in_buffers =
      examples ? CheckedMultiplyBytes(*examples, buffers.bytes_per_example) : std::nullopt;
  const auto numbers = CheckedMultiplyBytes(buffers.orders, buffers.examples_in_order);
  const auto in_orders = numbers ? CheckedMultiplyBytes(*numbers, sizeof(int64_t)) : std::nullopt;
  const auto bytes =
      in_buffers && in_orders ? CheckedAddBytes(*in_buffers, *in_orders) : std::nullopt;
  const std::string orders =
      in_orders.value_or(0) == 0
          ? ""
          : absl::StrCat(", and ", *in_orders, " bytes of example numbers (orders of ",
                         buffers.examples_in_order, ": ", buffers.orders, ")");
  return {.error = absl::StrCat(
              buffers.field, ": expected buffers that fit the memory, got ", buffers.buffers,
              " buffers of ", buffers.examples, " examples of ", buffers.bytes_per_example,
              " bytes", in_buffers ? absl::StrCat(", ", *in_buffers, " bytes") : "", orders),
          .bytes = bytes,
          .remedy = buffers.remedy};
}

}  // namespace lockstep::worker
