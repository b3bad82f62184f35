#include "ps/shard/inbox.h"

#include "common/base/check.h"

namespace lockstep::ps {

std::shared_ptr<Incoming> Inbox::Find(const PushKey& key, size_t variable) const {
  std::shared_ptr<Incoming> found = Find(key.worker, variable);
  return found != nullptr && found->key == key ? found : nullptr;
}

std::shared_ptr<Incoming> Inbox::Find(WorkerIndex worker, size_t variable) const {
  const auto found = incoming_.find({worker, variable});
  return found == incoming_.end() ? nullptr : found->second;
}

void Inbox::Add(std::shared_ptr<Incoming> incoming) {
  const std::pair<WorkerIndex, size_t> place(incoming->key.worker, incoming->variable);
  const bool is_free = incoming_.emplace(place, std::move(incoming)).second;
  LOCKSTEP_CHECK(is_free);
}

void Inbox::Remove(const Incoming& incoming) {
  incoming_.erase({incoming.key.worker, incoming.variable});
}

Inbox::Removed Inbox::RemoveIf(absl::FunctionRef<bool(const Incoming&)> condition) {
  Removed removed;
  for (auto entry = incoming_.begin(); entry != incoming_.end();) {
    if (condition(*entry->second)) {
      removed.push_back(std::move(entry->second));
      entry = incoming_.erase(entry);
    } else {
      ++entry;
    }
  }
  return removed;
}

}  // namespace lockstep::ps
