#include "common/config/shard_names.h"

#include "absl/strings/str_cat.h"

namespace lockstep {

std::vector<std::string> ShardNames(const std::vector<std::string>& ps_addresses) {
  std::vector<std::string> names;
  for (size_t shard = 0; shard < ps_addresses.size(); ++shard) {
    names.push_back(absl::StrCat("ps ", shard, " (", ps_addresses[shard], ")"));
  }
  return names;
}

}  // namespace lockstep
