// Names of shards in messages: each is named after its ps. Pure.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// "ps 0 (host:port)" for each of the addresses of a cluster's ps.
std::vector<std::string> ShardNames(const std::vector<std::string>& ps_addresses);

}  // namespace lockstep
