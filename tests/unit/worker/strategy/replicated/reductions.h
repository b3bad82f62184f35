// Every way in which a job may have the gradients of its towers reduced on CPUs.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/collective/make_schedule.h"

namespace lockstep::worker::test {

inline std::string SpecOf(const std::string& spec, const std::string& packing = "") {
  return absl::StrCat("cross_tower_ops { multi_worker_all_reduce { all_reduce_spec: '", spec, "' ",
                      packing.empty() ? "" : absl::StrCat("packing { ", packing, " } "), "} }");
}

// Fields of StrategyDef.Replicated that a group of this shape takes.
inline std::vector<std::string> ReductionsFor(const Topology& topology) {
  std::vector<std::string> all = {
      "",
      "mode: COLLECTIVE",
      "cross_tower_ops { collective_all_reduce { all_reduce_merge_scope: 2 } }",
      "cross_tower_ops { reduction_to_one_device { reduce_to_device: 1 } }",
      SpecOf("xring"),
      SpecOf("rechd"),
      SpecOf("pscpu"),
      SpecOf("pscpu/pscpu"),
      SpecOf("collective"),
      SpecOf("pscpu:2k:xring", "num_packs: 3"),
      SpecOf("rechd", "agg_small_grads_max_bytes: 2048"),
  };
  if (topology.towers > 1) all.push_back(SpecOf("xring#2"));
  if (topology.workers > 1) {
    all.push_back(SpecOf("pscpu:2k:pscpu#2:64k:xring"));
    all.push_back(SpecOf("pscpu/pscpu#2"));
  } else {
    all.push_back("mode: CPU");
    all.push_back("mode: GPU");
    all.push_back("cross_tower_ops { all_reduce { all_reduce_alg: 'hierarchical_copy' } }");
    if (topology.towers == 8) all.push_back("mode: HIERARCHICAL");
  }
  return all;
}

}  // namespace lockstep::worker::test
