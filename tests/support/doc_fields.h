// DocumentedFields reads the fields of a document from a page of docs/.
#pragma once

#include <fstream>
#include <string>
#include <vector>

namespace lockstep::test {

// The names in the first column of the table under the heading "## <heading>", in their order; none
// if there is no such heading. `page` is relative to the top of the checkout.
inline std::vector<std::string> DocumentedFields(const std::string& page,
                                                 const std::string& heading) {
  std::vector<std::string> fields;
  std::ifstream file(page);
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("## ", 0) == 0) inside = line == "## " + heading;
    if (!inside || line.rfind("| `", 0) != 0) continue;
    fields.push_back(line.substr(3, line.find('`', 3) - 3));
  }
  return fields;
}

}  // namespace lockstep::test
