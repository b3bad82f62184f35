// TypesOf lists the types of a header with their namespaces. Two types of one name in a program
// break C++'s one definition rule: the linker takes the destructor of one for that of the other.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::layering {

// "lockstep::ps::Shard" and so on: the classes and structs of a header that is formatted as ours
// are, except those within others.
std::vector<std::string> TypesOf(absl::string_view header);

}  // namespace lockstep::layering
