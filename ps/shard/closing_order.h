// The variables of a shard in the order in which they close, with the room that their gradients
// need. Of the variables that are at the same step the last one closes first; those that have
// closed in this step come behind all others.
//
// Every call takes time that grows with the logarithm of the number of variables, or less: with
// nothing held it ends where neighbours need as much.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::ps {

// Not thread-safe.
class ClosingOrder {
 public:
  explicit ClosingOrder(size_t num_variables);

  // From now on the variable takes part. Before the first Close.
  void Add(size_t variable);
  // Bytes of its gradients that are held, and those that room is left for.
  void Set(size_t variable, uint64_t held, uint64_t needed);
  // The variable has closed (CHECK: not before all others have closed as often).
  void Close(size_t variable);

  // All variables are to close in this step again.
  void Restart();

  struct Earlier {
    bool any = false;  // variable that closes before it
    // The most bytes at once, of those that are held behind a variable that closes earlier and
    // those that this one needs.
    uint64_t most = 0;
  };
  // With `bytes` more held for the variable.
  Earlier EarlierThan(size_t variable, uint64_t bytes) const;

 private:
  // Variables [of a range], the one that closes last first.
  struct Range {
    bool any = false;
    uint64_t held = 0;
    uint64_t most = 0;  // held before a variable of the range, and needed by it

    static Range Join(const Range& later, const Range& earlier);
    friend bool operator==(const Range&, const Range&) = default;
  };

  // Of the variables that have closed as often, by index.
  class Tree {
   public:
    explicit Tree(size_t num_leaves) : leaves_(num_leaves), nodes_(2 * num_leaves) {}
    void Set(size_t leaf, const Range& range);
    const Range& all() const { return nodes_[1]; }
    const Range& leaf(size_t leaf) const { return nodes_[leaves_ + leaf]; }
    // Of leaves [begin, end).
    Range Of(size_t begin, size_t end) const;

   private:
    size_t leaves_;  // a power of two
    std::vector<Range> nodes_;
  };

  size_t TreeOf(size_t variable) const { return has_closed_[variable] ? 1 - open_ : open_; }

  const size_t num_leaves_;
  std::array<Tree, 2> trees_;
  size_t open_ = 0;  // the tree of the variables that are still to close in this step
  std::vector<bool> has_closed_;
};

}  // namespace lockstep::ps
