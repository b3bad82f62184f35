// Refuses messages of strangers, and of too many tensors, before they are parsed, which the thread
// that serves everybody would do.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// `message` is a PullRequest, StoreVersionRequest or PutStateRequest without payload, whose field
// `pieces` has that number. The error that the shard has for its sender; INVALID_ARGUMENT: it has
// more pieces than limits::kMaxPieces, or is malformed. OK for a short message, which the shard
// checks once it is parsed.
absl::Status CheckUnparsed(absl::string_view message, int pieces, const Shard& shard);
// The same of a PushRequest: of its pieces, the means' gradients and the pieces of its next pull,
// each list has so many entries at most.
absl::Status CheckUnparsedPush(absl::string_view message, const Shard& shard);

}  // namespace lockstep::ps
