#include "worker/data/buffer_memory.h"

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/exit_code.h"

namespace lockstep::worker {
namespace {

// 16 MiB: what a worker takes besides is more.
constexpr uint64_t kSmall = uint64_t{1} << 24;

std::optional<uint64_t> BytesOf(const BufferMemory& need) {
  const auto examples = CheckedMultiplyBytes(need.buffers, need.examples);
  return examples ? CheckedMultiplyBytes(*examples, need.bytes_per_example) : std::nullopt;
}

}  // namespace

absl::Status CheckBufferMemory(const BufferMemory& need, std::optional<uint64_t> available) {
  const std::optional<uint64_t> bytes = BytesOf(need);
  if (bytes && (*bytes <= kSmall || !available || *bytes <= *available)) return absl::OkStatus();
  return WithExitCode(
      absl::ResourceExhaustedError(absl::StrCat(
          need.fields, ": expected buffers that fit the memory, got ", need.buffers, " buffers of ",
          need.examples, " examples of ", need.bytes_per_example, " bytes",
          bytes ? absl::StrCat(", ", *bytes, " bytes") : "",
          available ? absl::StrCat(", with ", *available, " available to this process") : "",
          ". Remedy: lower ", need.fields,
          ", or use a machine or a limit (control group) with more memory.")),
      ExitCode::kBadConfiguration);
}

}  // namespace lockstep::worker
