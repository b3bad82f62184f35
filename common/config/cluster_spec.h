// The cluster spec: the addresses of all tasks. It is the same on every task, from any source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep {

enum class Role { kPs, kWorker, kChief };

// "ps", "worker", "chief".
absl::string_view Name(Role role);

// Addresses are in the form of Address::ToString. A spec from ReadClusterFile or ReadTfConfig has
// passed ValidateCluster.
struct ClusterSpec {
  std::vector<std::string> ps;  // by task index
  std::vector<std::string> workers;
  std::string chief;                      // chief 0
  std::vector<std::string> other_chiefs;  // chief 1, 2, ...; one of all chiefs commands

  // One line per task ("ps 0 host:port"), chiefs first. Two specs that mean the same cluster have
  // the same text: tasks compare it before they work together. The line of chief 0 has no index.
  std::string Canonical() const;

  // By task index.
  std::vector<std::string> chiefs() const;
  int Count(Role role) const;
  // `index` is below Count(role).
  const std::string& AddressOf(Role role, int index) const;
};

// Checks that there are at least one ps, one worker and one chief, that each address is
// "host:port", and that none comes twice. INVALID_ARGUMENT names the entry. Rewrites the addresses
// in their canonical form.
absl::Status ValidateCluster(ClusterSpec* spec);

// Names the first entries that differ in two canonical texts: "worker 1 is a:1 in ours and b:1 in
// theirs". `canonical_b` may come from a peer and hold anything. If it is much longer than
// `canonical_a`, its beginning is compared. Empty when they are equal.
std::string DescribeDifference(absl::string_view canonical_a, absl::string_view canonical_b,
                               absl::string_view name_a = "ours",
                               absl::string_view name_b = "theirs");

// The address of worker `index` in a canonical text; none: there is no such worker.
std::optional<std::string> WorkerAddressIn(absl::string_view canonical, uint32_t index);
// The same of a chief.
std::optional<std::string> ChiefAddressIn(absl::string_view canonical, uint32_t index);

}  // namespace lockstep
