// The side that comes to exchange memory: fd_passing_server.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/shm/segment.h"

namespace lockstep::shm {

// Gives `ours` (null: nothing) to the server of this socket and takes its segment (null: it has
// none). Blocks, no longer than `patience`. UNAVAILABLE: there is no
// such socket here, which is so in another network namespace too; PERMISSION_DENIED: of another
// user, or a wrong secret.
absl::StatusOr<std::shared_ptr<const Segment>> ShareMemory(const std::string& socket,
                                                           uint64_t secret, const Segment* ours,
                                                           absl::Duration patience);

}  // namespace lockstep::shm
