// The end of a text file.
#pragma once

#include <string>
#include <vector>

namespace lockstep::deploy {

// The last `count` lines, each cut to a readable length; none when the file cannot be read.
std::vector<std::string> LastLines(const std::string& path, int count);

}  // namespace lockstep::deploy
