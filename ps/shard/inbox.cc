#include "ps/shard/inbox.h"

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

using List = Incoming::Links Incoming::*;

void Link(Incoming* incoming, List list, Incoming** first) {
  incoming->*list = {nullptr, *first};
  if (*first != nullptr) ((*first)->*list).previous = incoming;
  *first = incoming;
}

void Unlink(Incoming* incoming, List list, Incoming** first) {
  const auto [previous, next] = incoming->*list;
  (previous == nullptr ? *first : (previous->*list).next) = next;
  if (next != nullptr) (next->*list).previous = previous;
}

}  // namespace

std::shared_ptr<Incoming> Inbox::Find(const PushKey& key, size_t variable) const {
  std::shared_ptr<Incoming> found = Find(key.worker, variable);
  return found != nullptr && found->key == key ? found : nullptr;
}

std::shared_ptr<Incoming> Inbox::Find(WorkerIndex worker, size_t variable) const {
  const auto found = incoming_.find({worker, variable});
  return found == incoming_.end() ? nullptr : found->second;
}

void Inbox::Add(std::shared_ptr<Incoming> incoming) {
  Incoming* const added = incoming.get();
  if (added->variable >= first_of_variable_.size()) first_of_variable_.resize(added->variable + 1);
  Link(added, &Incoming::of_worker, &first_of_worker_[added->key.worker]);
  Link(added, &Incoming::of_variable, &first_of_variable_[added->variable]);
  const bool is_free =
      incoming_.try_emplace({added->key.worker, added->variable}, std::move(incoming)).second;
  LOCKSTEP_CHECK(is_free);
}

void Inbox::Remove(const Incoming& incoming) { Take(incoming); }

std::shared_ptr<Incoming> Inbox::Take(const Incoming& incoming) {
  const auto found = incoming_.find({incoming.key.worker, incoming.variable});
  if (found == incoming_.end()) return nullptr;
  std::shared_ptr<Incoming> taken = std::move(found->second);
  incoming_.erase(found);
  const auto of_worker = first_of_worker_.find(taken->key.worker);
  Unlink(taken.get(), &Incoming::of_worker, &of_worker->second);
  if (of_worker->second == nullptr) first_of_worker_.erase(of_worker);
  Unlink(taken.get(), &Incoming::of_variable, &first_of_variable_[taken->variable]);
  return taken;
}

Inbox::Removed Inbox::RemoveOf(WorkerIndex worker) {
  Removed removed;
  const auto first = first_of_worker_.find(worker);
  Incoming* next = first == first_of_worker_.end() ? nullptr : first->second;
  while (next != nullptr) {
    const Incoming* const incoming = std::exchange(next, next->of_worker.next);
    removed.push_back(Take(*incoming));
  }
  return removed;
}

Inbox::Removed Inbox::RemoveIf(size_t variable,
                               absl::FunctionRef<bool(const Incoming&)> condition) {
  Removed removed;
  Incoming* next = variable < first_of_variable_.size() ? first_of_variable_[variable] : nullptr;
  while (next != nullptr) {
    const Incoming* const incoming = std::exchange(next, next->of_variable.next);
    if (condition(*incoming)) removed.push_back(Take(*incoming));
  }
  return removed;
}

Inbox::Removed Inbox::RemoveIf(absl::FunctionRef<bool(const Incoming&)> condition) {
  Removed removed;
  for (size_t variable = 0; variable < first_of_variable_.size(); ++variable) {
    for (std::shared_ptr<Incoming>& of_variable : RemoveIf(variable, condition)) {
      removed.push_back(std::move(of_variable));
    }
  }
  return removed;
}

}  // namespace lockstep::ps
