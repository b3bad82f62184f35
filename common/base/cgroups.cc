#include "common/base/cgroups.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

constexpr char kTree[] = "/sys/fs/cgroup";

}  // namespace

void VisitCgroups(const std::string& root, absl::string_view controller,
                  const std::function<void(const std::string& folder, bool is_unified)>& visit) {
  std::ifstream groups(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(groups, line);) {
    // number:controllers:path, where the unified tree has no controllers.
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    const bool is_unified = fields[1].empty();
    if (!is_unified && std::ranges::find(controllers, controller) == controllers.end()) continue;
    const std::string tree =
        is_unified ? absl::StrCat(root, kTree) : absl::StrCat(root, kTree, "/", fields[1]);
    std::string path = fields[2];
    while (true) {
      visit(tree + path, is_unified);
      const size_t slash = path.rfind('/');
      if (slash == std::string::npos) break;
      path.resize(slash);
    }
  }
}

}  // namespace lockstep
