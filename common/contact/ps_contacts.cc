#include "common/contact/ps_contacts.h"

#include <utility>

namespace lockstep {

PsContacts::PsContacts(PeerContactOptions options, MakePing make_ping)
    : options_(std::move(options)), make_ping_(std::move(make_ping)) {}

void PsContacts::SetPlace(size_t shard, const std::string& name, const std::string& address) {
  absl::MutexLock lock(&mutex_);
  if (is_stopped_) return;
  if (places_.size() <= shard) places_.resize(shard + 1);
  Place& place = places_[shard];
  if (place.address == address) return;
  place.address = address;
  std::unique_ptr<PeerPing> ping = make_ping_(name, address);
  if (place.contact != nullptr) {
    place.contact->MoveTo(name, std::move(ping));
  } else {
    place.contact = std::make_unique<PeerContact>(options_, name, std::move(ping));
  }
  if (counts_silence_) place.contact->CountSilence();
}

void PsContacts::CountSilence() {
  absl::MutexLock lock(&mutex_);
  counts_silence_ = true;
  for (const Place& place : places_) {
    if (place.contact != nullptr) place.contact->CountSilence();
  }
}

void PsContacts::Stop() {
  std::vector<Place> places;
  absl::MutexLock lock(&mutex_);
  is_stopped_ = true;
  places.swap(places_);
}

}  // namespace lockstep
