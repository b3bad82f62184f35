// The key of a stream that Philox(seed, purpose) is made of is MixSeeds(seed,
// PurposeHash(purpose)), for those whose kernels compute it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

uint64_t PurposeHash(absl::string_view purpose);

}  // namespace lockstep
