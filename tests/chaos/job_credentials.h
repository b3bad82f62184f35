// The token of a job under chaos.
#pragma once

#include <memory>
#include <string>

#include "common/rpc/credentials.h"

namespace lockstep::test {

// Writes a new token to `path` and returns what a reader with it shows of itself. Aborts where that
// fails.
std::shared_ptr<const rpc::Credentials> NewToken(const std::string& path);

}  // namespace lockstep::test
