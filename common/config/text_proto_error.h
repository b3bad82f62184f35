// Protobuf's words for a mistake in a text proto, turned into ours.
#pragma once

#include <string>

#include "google/protobuf/descriptor.h"

namespace lockstep {

// `message` is what protobuf says about a text of type `root`. The answer has a remedy; a mistake
// of an unknown kind keeps protobuf's words.
std::string ExplainTextProtoError(const google::protobuf::Descriptor& root,
                                  const std::string& message);

}  // namespace lockstep
