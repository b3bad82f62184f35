#include "worker/service/ps_contacts.h"

#include <utility>

#include "common/log/log.h"

namespace lockstep::worker {

PsContacts::PsContacts(absl::Duration lease, MakePing make_ping, Timer* timer)
    : lease_(lease), make_ping_(std::move(make_ping)), timer_(timer) {}

void PsContacts::SetPlace(size_t shard, const std::string& name, const std::string& address) {
  absl::MutexLock lock(&mutex_);
  if (places_.size() <= shard) places_.resize(shard + 1);
  Place& place = places_[shard];
  if (place.address == address) return;
  place.address = address;
  std::unique_ptr<PeerPing> ping = make_ping_(name, address);
  if (place.contact != nullptr) return place.contact->MoveTo(name, std::move(ping));
  place.contact = std::make_unique<PeerContact>(
      PeerContactOptions{.lease = lease_, .timer = timer_, .log = log::Warning}, name,
      std::move(ping));
}

}  // namespace lockstep::worker
