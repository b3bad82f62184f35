#include "ps/shard/reassembly_buffer.h"

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

using List = PartialGradient::Links PartialGradient::*;

void Link(PartialGradient* incoming, List list, PartialGradient** first) {
  incoming->*list = {nullptr, *first};
  if (*first != nullptr) ((*first)->*list).previous = incoming;
  *first = incoming;
}

void Unlink(PartialGradient* incoming, List list, PartialGradient** first) {
  const auto [previous, next] = incoming->*list;
  (previous == nullptr ? *first : (previous->*list).next) = next;
  if (next != nullptr) (next->*list).previous = previous;
}

}  // namespace

std::shared_ptr<PartialGradient> ReassemblyBuffer::Find(const PushKey& key, size_t variable) const {
  std::shared_ptr<PartialGradient> found = Find(key.pusher(), variable);
  return found != nullptr && found->key == key ? found : nullptr;
}

std::shared_ptr<PartialGradient> ReassemblyBuffer::Find(const Pusher& pusher,
                                                        size_t variable) const {
  const auto found = incoming_.find({pusher, variable});
  return found == incoming_.end() ? nullptr : found->second;
}

std::vector<const PartialGradient*> ReassemblyBuffer::PartialOf(size_t variable) const {
  std::vector<const PartialGradient*> partial;
  if (variable >= first_of_variable_.size()) return partial;
  for (const PartialGradient* gradient = first_of_variable_[variable]; gradient != nullptr;
       gradient = gradient->of_variable.next) {
    partial.push_back(gradient);
  }
  return partial;
}

void ReassemblyBuffer::Add(std::shared_ptr<PartialGradient> incoming) {
  PartialGradient* const added = incoming.get();
  if (added->variable >= first_of_variable_.size()) first_of_variable_.resize(added->variable + 1);
  Link(added, &PartialGradient::of_pusher, &first_of_pusher_[added->key.pusher()]);
  Link(added, &PartialGradient::of_variable, &first_of_variable_[added->variable]);
  const bool is_free =
      incoming_.try_emplace({added->key.pusher(), added->variable}, std::move(incoming)).second;
  LOCKSTEP_CHECK(is_free);
}

void ReassemblyBuffer::Remove(const PartialGradient& incoming) { Take(incoming); }

std::shared_ptr<PartialGradient> ReassemblyBuffer::Take(const PartialGradient& incoming) {
  const auto found = incoming_.find({incoming.key.pusher(), incoming.variable});
  if (found == incoming_.end()) return nullptr;
  std::shared_ptr<PartialGradient> taken = std::move(found->second);
  incoming_.erase(found);
  const auto of_pusher = first_of_pusher_.find(taken->key.pusher());
  Unlink(taken.get(), &PartialGradient::of_pusher, &of_pusher->second);
  if (of_pusher->second == nullptr) first_of_pusher_.erase(of_pusher);
  Unlink(taken.get(), &PartialGradient::of_variable, &first_of_variable_[taken->variable]);
  return taken;
}

ReassemblyBuffer::Removed ReassemblyBuffer::RemoveOf(const Pusher& pusher) {
  Removed removed;
  const auto first = first_of_pusher_.find(pusher);
  PartialGradient* next = first == first_of_pusher_.end() ? nullptr : first->second;
  while (next != nullptr) {
    const PartialGradient* const incoming = std::exchange(next, next->of_pusher.next);
    removed.push_back(Take(*incoming));
  }
  return removed;
}

ReassemblyBuffer::Removed ReassemblyBuffer::RemoveIf(
    size_t variable, absl::FunctionRef<bool(const PartialGradient&)> condition) {
  Removed removed;
  PartialGradient* next =
      variable < first_of_variable_.size() ? first_of_variable_[variable] : nullptr;
  while (next != nullptr) {
    const PartialGradient* const incoming = std::exchange(next, next->of_variable.next);
    if (condition(*incoming)) removed.push_back(Take(*incoming));
  }
  return removed;
}

ReassemblyBuffer::Removed ReassemblyBuffer::RemoveIf(
    absl::FunctionRef<bool(const PartialGradient&)> condition) {
  Removed removed;
  for (size_t variable = 0; variable < first_of_variable_.size(); ++variable) {
    for (std::shared_ptr<PartialGradient>& of_variable : RemoveIf(variable, condition)) {
      removed.push_back(std::move(of_variable));
    }
  }
  return removed;
}

}  // namespace lockstep::ps
