// ChaosOptions describes the job that a chaos run trains.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace lockstep::test {

struct ChaosOptions {
  bool has_copies = false;  // sync.ps_replicas: 1
  bool has_backup = false;  // a worker more than a step needs
  bool is_ledger = false;   // the ledger's job (ledger.h) in place of the digits
  bool has_token = false;   // of the job
  bool has_hosts = false;   // each task on a host of its own, in place of proxies
  absl::Duration sleep;     // of a worker in each step
  std::string more;         // further fields of JobDef, as text

  // Gradients that a step needs.
  int required() const { return 2; }
  int num_workers() const { return has_backup ? required() + 1 : required(); }
};

}  // namespace lockstep::test
