// Columns of text, aligned.
#pragma once

#include <string>
#include <vector>

namespace lockstep::deploy {

// The first row is the header. Each line ends with a newline; columns are two spaces apart, and as
// wide as their widest cell. Rows may be shorter than the header.
std::string TextTable(const std::vector<std::vector<std::string>>& rows);

}  // namespace lockstep::deploy
