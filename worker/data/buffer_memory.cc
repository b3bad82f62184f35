#include "worker/data/buffer_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"

namespace lockstep::worker {

MemoryNeed NeedOf(const BufferMemory& buffers) {
  const auto examples = CheckedMultiplyBytes(buffers.buffers, buffers.examples);
  const auto bytes =
      examples ? CheckedMultiplyBytes(*examples, buffers.bytes_per_example) : std::nullopt;
  return {.error = absl::StrCat(buffers.field, ": expected buffers that fit the memory, got ",
                                buffers.buffers, " buffers of ", buffers.examples, " examples of ",
                                buffers.bytes_per_example, " bytes",
                                bytes ? absl::StrCat(", ", *bytes, " bytes") : ""),
          .bytes = bytes,
          .remedy = buffers.remedy};
}

}  // namespace lockstep::worker
