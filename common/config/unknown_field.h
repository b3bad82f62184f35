// Suggests the field that a user meant by a name that a text proto does not have there.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

namespace lockstep {

// `root` and every message type that it holds, at any depth, outer ones first.
std::vector<const google::protobuf::Descriptor*> TypesOf(const google::protobuf::Descriptor& root);

// The first field of this name in any of `types`. May be null.
const google::protobuf::FieldDescriptor* FindField(
    const std::vector<const google::protobuf::Descriptor*>& types, const std::string& name);

// A type by the name of its block in the file: "the job" for the file itself, "data",
// "max_pool or average_pool".
std::string BlockName(const std::vector<const google::protobuf::Descriptor*>& types,
                      const google::protobuf::Descriptor& type);

// One line that names the block, the field that was meant if that can be told, and the remedy.
// `types` are those of the whole text.
std::string DescribeUnknownField(const std::vector<const google::protobuf::Descriptor*>& types,
                                 const google::protobuf::Descriptor& type,
                                 const std::string& field);

}  // namespace lockstep
