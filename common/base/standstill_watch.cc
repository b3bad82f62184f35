#include "common/base/standstill_watch.h"

#include <utility>

namespace lockstep {
namespace {

// Between two calls of a process that runs.
constexpr absl::Duration kLongestTick = absl::Seconds(1);

}  // namespace

absl::Duration StandstillWatch::Measure(absl::Duration now) {
  const absl::Duration since = now - std::exchange(looked_at_, now);
  return since > kLongestTick ? since : absl::ZeroDuration();
}

}  // namespace lockstep
