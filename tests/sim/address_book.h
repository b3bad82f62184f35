// AddressBook maps the addresses of a simulated cluster to the servers that listen there.
#pragma once

#include <map>
#include <string>

#include "common/client/ps_control.h"
#include "tests/sim/node.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

// A server of a ps, which refuses connections while its process is dead.
struct ListeningPs {
  Node node;
  PsControl* control = nullptr;
  PsData* data = nullptr;
};

class AddressBook {
 public:
  // `address` is new. The ends outlive the book's users.
  void Add(const std::string& address, const ListeningPs& ps) { listening_[address] = ps; }
  // Throws on an address that was never added.
  const ListeningPs& Find(const std::string& address) const { return listening_.at(address); }

 private:
  std::map<std::string, ListeningPs> listening_;
};

}  // namespace lockstep::sim
