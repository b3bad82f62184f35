// How messages name a shard: after its ps. Pure.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

// "ps 0 (host:port)" of each, by the addresses of a cluster's ps.
std::vector<std::string> ShardNames(const std::vector<std::string>& ps_addresses);

}  // namespace lockstep
