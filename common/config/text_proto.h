// Text protos that users write, with errors that say where and what to do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// INVALID_ARGUMENT "<source>:<line>:<column>: <what is wrong>. Remedy: <what to do>", lines and
// columns counted from 1. Only the first mistake is told.
absl::Status ParseTextProto(absl::string_view source, const std::string& text,
                            google::protobuf::Message* message);

// The file at `path`; errors as ReadTextFile's and ParseTextProto's.
absl::Status ReadTextProto(const std::string& path, google::protobuf::Message* message);

}  // namespace lockstep
