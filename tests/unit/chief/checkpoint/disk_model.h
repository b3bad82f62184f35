// DiskModel restores a folder after a power cut: all synced changes, and any part of the rest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/disk_faults.h"

namespace lockstep::test {

// The unsynced changes that survive the power cut.
struct Remains {
  std::function<bool()> additions;  // each new name; a rename is one
  std::function<bool()> removals;
  bool data = false;  // written to files since their last sync
};

// A folder that is empty in the beginning. Names become durable with a sync of their folder, and
// before that in any order or not at all; data with a sync of their file.
class DiskModel {
 public:
  explicit DiskModel(std::string root);

  // Called in the order in which changes were made. Aborts on an impossible one.
  void Apply(const DiskChange& change);
  // Makes the files and folders that are left, below `to`.
  void Restore(const std::string& to, const Remains& remains) const;

 private:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  struct EntryChange {
    std::string removed;  // empty: none
    std::string added;    // the same
    std::shared_ptr<Node> node;
  };
  struct Node {
    bool is_folder = false;
    std::string data, synced_data;
    Entries entries, synced_entries;
    std::vector<EntryChange> changes;  // since the last sync
  };

  static void Make(const EntryChange& change, Entries* entries);
  static void RestoreNode(const Node& node, const std::string& to, const Remains& remains);
  // Null: there is none.
  std::shared_ptr<Node> Find(const std::string& path) const;
  // Returns the node of the folder that holds `path`.
  Node& ParentOf(const std::string& path) const;
  void ChangeEntry(const std::string& path, EntryChange change);

  const std::string root_;
  const std::shared_ptr<Node> top_;
};

}  // namespace lockstep::test
