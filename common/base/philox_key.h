// The key of a stream that Philox(seed, purpose) is made of, for those that pass it to kernels.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace lockstep {

uint64_t PhiloxKey(uint64_t seed, absl::string_view purpose);

}  // namespace lockstep
