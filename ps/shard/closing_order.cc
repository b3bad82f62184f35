#include "ps/shard/closing_order.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace lockstep::ps {
namespace {

// More than any machine has: sums of two of these do not wrap.
constexpr uint64_t kMost = uint64_t{1} << 62;

uint64_t Sum(uint64_t a, uint64_t b) { return std::min(a + b, kMost); }

}  // namespace

ClosingOrder::Range ClosingOrder::Range::Join(const Range& later, const Range& earlier) {
  if (!later.any) return earlier;
  if (!earlier.any) return later;
  return {true, Sum(later.held, earlier.held), std::max(later.most, Sum(later.held, earlier.most))};
}

void ClosingOrder::Tree::Set(size_t leaf, const Range& range) {
  size_t node = leaves_ + leaf;
  nodes_[node] = range;
  for (node /= 2; node > 0; node /= 2) {
    const Range joined = Range::Join(nodes_[2 * node], nodes_[2 * node + 1]);
    if (joined == nodes_[node]) return;
    nodes_[node] = joined;
  }
}

ClosingOrder::Range ClosingOrder::Tree::Of(size_t begin, size_t end) const {
  Range left;
  Range right;
  for (begin += leaves_, end += leaves_; begin < end; begin /= 2, end /= 2) {
    if (begin % 2 == 1) left = Range::Join(left, nodes_[begin++]);
    if (end % 2 == 1) right = Range::Join(nodes_[--end], right);
  }
  return Range::Join(left, right);
}

// Two leaves at least: node 1 is the root.
ClosingOrder::ClosingOrder(size_t num_variables)
    : num_leaves_(std::bit_ceil(std::max<size_t>(num_variables, 2))),
      trees_({Tree(num_leaves_), Tree(num_leaves_)}),
      has_closed_(num_variables) {}

void ClosingOrder::Add(size_t variable) { trees_[open_].Set(variable, {true, 0, 0}); }

void ClosingOrder::Set(size_t variable, uint64_t held, uint64_t needed) {
  Tree& tree = trees_[TreeOf(variable)];
  if (!tree.leaf(variable).any) return;
  tree.Set(variable, {true, std::min(held, kMost), std::min(needed, kMost)});
}

void ClosingOrder::Close(size_t variable) {
  LOCKSTEP_CHECK(!has_closed_[variable]);
  const Range range = trees_[open_].leaf(variable);
  trees_[open_].Set(variable, {});
  trees_[1 - open_].Set(variable, range);
  has_closed_[variable] = true;
  if (trees_[open_].all().any) return;
  open_ = 1 - open_;
  has_closed_.assign(has_closed_.size(), false);
}

void ClosingOrder::Restart() {
  for (size_t variable = 0; variable < has_closed_.size(); ++variable) {
    if (!has_closed_[variable]) continue;
    const Range range = trees_[1 - open_].leaf(variable);
    trees_[1 - open_].Set(variable, {});
    trees_[open_].Set(variable, range);
    has_closed_[variable] = false;
  }
}

ClosingOrder::Earlier ClosingOrder::EarlierThan(size_t variable, uint64_t bytes) const {
  const Range& closed = trees_[1 - open_].all();
  const size_t tree = TreeOf(variable);
  Range before = trees_[tree].Of(0, variable + 1);
  const Range after = trees_[tree].Of(variable + 1, num_leaves_);
  Range earlier = after;
  if (tree == open_) {
    before = Range::Join(closed, before);
  } else {
    earlier = Range::Join(after, trees_[open_].all());
  }
  return {earlier.any, Sum(Sum(before.held, std::min(bytes, kMost)), earlier.most)};
}

}  // namespace lockstep::ps
