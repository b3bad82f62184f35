#include "tests/layering/type_names.h"

#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace lockstep::layering {

std::vector<std::string> TypesOf(absl::string_view header) {
  static const std::regex* const kNamespace = new std::regex(R"(namespace ([\w:]+) \{)");
  // "class ABSL_LOCKABLE Name final : public Base {"; a specialization has "<" after its name.
  static const std::regex* const kType = new std::regex(
      R"((?:class|struct) (?:[A-Z_]+(?:\(.*\))? )?(\w+)(?: final)?(?: :.*)?(?: \{.*)?)");
  std::vector<std::string> types;
  std::vector<std::string> namespaces;
  for (const absl::string_view piece : absl::StrSplit(header, '\n')) {
    const std::string line(piece);
    std::smatch found;
    if (std::regex_match(line, found, *kNamespace)) {
      namespaces.push_back(found[1]);
    } else if (absl::StartsWith(line, "}  // namespace") && !namespaces.empty()) {
      namespaces.pop_back();
    } else if (std::regex_match(line, found, *kType)) {
      types.push_back(absl::StrCat(absl::StrJoin(namespaces, "::"), "::", std::string(found[1])));
    }
  }
  return types;
}

}  // namespace lockstep::layering
