// Reads the status of any process once, for tools. Blocks. Again and again: StatusReader.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/rpc/credentials.h"
#include "proto/status.pb.h"

namespace lockstep {

absl::StatusOr<ProcessStatus> FetchStatus(const std::string& address, absl::Duration timeout,
                                          const rpc::Credentials* credentials = nullptr);

}  // namespace lockstep
