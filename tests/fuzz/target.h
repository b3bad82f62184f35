// Fuzz targets: each gives bytes that anybody may have written to one reader of ours. The fuzzer
// looks for inputs that end the process (a CHECK, a sanitizer) or take too long; corpus/NAME has
// inputs of a target that are replayed by the tests.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::fuzz {

using Run = void (*)(absl::string_view input);

// A static object of each target registers it. `name` is also that of its folder.
class Target {
 public:
  Target(const char* name, Run run);
};

// nullptr: there is none.
Run FindTarget(absl::string_view name);
std::vector<std::string> TargetNames();

// What readers promise of an error: a message of one line, without what would change a terminal.
// Ends the process otherwise.
void CheckMessage(const absl::Status& status);

// The path of a file with these contents, until the next call. One thread.
std::string FileWith(absl::string_view contents);

}  // namespace lockstep::fuzz
