// Refuses the large messages of strangers before they are parsed, which the thread that serves
// everybody would do.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// `message` is a PushRequest without payload, or a PullRequest. The error that the shard has for
// its sender. OK for a short message, which the shard checks once it is parsed.
absl::Status CheckSender(absl::string_view message, const Shard& shard);

}  // namespace lockstep::ps
