// On which device each tower of a worker is.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "worker/device/device.h"

namespace lockstep::worker {

class Communicator;

// Immutable. The devices outlive it: one, or several that are of one kind and not the host. Towers
// are on them in turn.
class TowerDevices {
 public:
  TowerDevices(Device* device) : devices_({device}) {}  // NOLINT: implicit
  // `communicator`, which outlives it, is of these devices in this order; null: there is none.
  explicit TowerDevices(std::vector<Device*> devices, Communicator* communicator = nullptr)
      : devices_(std::move(devices)), communicator_(communicator) {
    LOCKSTEP_CHECK(!devices_.empty());
    LOCKSTEP_CHECK(devices_.size() == 1 || !is_host());
  }

  size_t size() const { return devices_.size(); }
  size_t index_of(size_t tower) const { return tower % devices_.size(); }
  Device* of(size_t tower) const { return devices_[index_of(tower)]; }
  // Where what concerns all towers is.
  Device* first() const { return devices_.front(); }
  const std::vector<Device*>& all() const { return devices_; }
  bool is_host() const { return first()->is_host(); }
  Communicator* communicator() const { return communicator_; }

 private:
  std::vector<Device*> devices_;
  Communicator* communicator_ = nullptr;
};

}  // namespace lockstep::worker
