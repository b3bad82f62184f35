#include "tests/unit/chief/checkpoint/disk_model.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/fs/path.h"

namespace lockstep::test {

DiskModel::DiskModel(std::string root) : root_(std::move(root)), top_(std::make_shared<Node>()) {
  top_->is_folder = true;
}

std::shared_ptr<DiskModel::Node> DiskModel::Find(const std::string& path) const {
  if (path == root_) return top_;
  const Node& parent = ParentOf(path);
  const auto found = parent.entries.find(NameOf(path));
  return found == parent.entries.end() ? nullptr : found->second;
}

DiskModel::Node& DiskModel::ParentOf(const std::string& path) const {
  const std::shared_ptr<Node> parent = Find(FolderOf(path));
  if (parent == nullptr) std::abort();
  return *parent;
}

void DiskModel::Make(const EntryChange& change, Entries* entries) {
  if (!change.removed.empty()) entries->erase(change.removed);
  if (!change.added.empty()) (*entries)[change.added] = change.node;
}

void DiskModel::ChangeEntry(const std::string& path, EntryChange change) {
  Node& parent = ParentOf(path);
  Make(change, &parent.entries);
  parent.changes.push_back(std::move(change));
}

void DiskModel::Apply(const DiskChange& change) {
  const std::string name = NameOf(change.path);
  const std::shared_ptr<Node> node = Find(change.path);
  if (change.operation == "create" || change.operation == "mkdir") {
    if (node != nullptr) return;
    auto made = std::make_shared<Node>();
    made->is_folder = change.operation == "mkdir";
    return ChangeEntry(change.path, {"", name, std::move(made)});
  }
  if (change.operation == "rename") {
    // Nothing is moved to another folder.
    if (FolderOf(change.from) != FolderOf(change.path)) std::abort();
    return ChangeEntry(change.path, {NameOf(change.from), name, Find(change.from)});
  }
  if (node == nullptr) std::abort();
  if (change.operation == "remove") return ChangeEntry(change.path, {name, "", nullptr});
  if (change.operation == "write") {
    node->data += change.bytes;
  } else if (change.operation == "truncate") {
    node->data.clear();
  } else if (change.operation == "sync") {
    node->synced_data = node->data;
    node->synced_entries = node->entries;
    node->changes.clear();
  } else {
    std::abort();
  }
}

void DiskModel::RestoreNode(const Node& node, const std::string& to, const Remains& remains) {
  if (!node.is_folder) {
    std::ofstream(to, std::ios::binary) << (remains.data ? node.data : node.synced_data);
    return;
  }
  std::filesystem::create_directories(to);
  Entries entries = node.synced_entries;
  for (const EntryChange& change : node.changes) {
    if (change.added.empty() ? remains.removals() : remains.additions()) Make(change, &entries);
  }
  for (const auto& [name, entry] : entries) RestoreNode(*entry, JoinPath(to, name), remains);
}

void DiskModel::Restore(const std::string& to, const Remains& remains) const {
  RestoreNode(*top_, to, remains);
}

}  // namespace lockstep::test
