// Protobuf's words for a mistake in a text proto, turned into ours.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

struct TextProtoMistake {
  std::string text;     // one printable line that ends with the remedy
  std::string culprit;  // the name or value that is wrong, when it is known
};

// `message` is what protobuf says about a text of type `root`, `before` the line up to the place
// that protobuf names. A mistake of an unknown kind keeps protobuf's words.
TextProtoMistake ExplainTextProtoError(const google::protobuf::Descriptor& root,
                                       const std::string& message, absl::string_view before);

}  // namespace lockstep
