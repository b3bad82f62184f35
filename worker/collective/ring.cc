// Ring and recursive halving-doubling: every participant adds a part of its own.
#include <bit>

#include "worker/collective/building_blocks.h"

namespace lockstep::worker {

namespace {

// N members, S rings: N * S chunks, segment k of ring s is chunk k * S + s.
class Segments {
 public:
  Segments(const std::vector<std::vector<int>>& orders, size_t length)
      : rings_(static_cast<int>(orders.size())),
        members_(static_cast<int>(orders[0].size())),
        length_(length) {}

  int rings() const { return rings_; }
  int members() const { return members_; }
  // Segments are counted around the ring.
  ElementRange Of(int ring, int segment) const {
    return PaddedPiece(length_, members_ * rings_, segment % members_ * rings_ + ring);
  }

 private:
  const int rings_;
  const int members_;
  const size_t length_;
};

}  // namespace

// In tick t of the reduction, the member at position r of a ring adds segment (r + N - 2 - t) mod
// N, its predecessor's value first.
void AddRing(const std::vector<std::vector<int>>& orders, size_t length, ScheduleBuilder* builder) {
  const Segments segments(orders, length);
  const int n = segments.members();
  for (int tick = 0; tick + 1 < n; ++tick) {
    for (int s = 0; s < segments.rings(); ++s) {
      for (int r = 0; r < n; ++r) {
        const int terms[] = {orders[s][(r + n - 1) % n], orders[s][r]};
        const bool is_total = tick + 2 == n;
        builder->Sum(terms[1], segments.Of(s, r + n - 2 - tick), terms, is_total);
      }
    }
    builder->EndTick();
  }
  AddRingOfCopies(orders, length, builder);
}

// In tick t the member at position r copies segment (r + N - 1 - t) mod N from its predecessor.
void AddRingOfCopies(const std::vector<std::vector<int>>& orders, size_t length,
                     ScheduleBuilder* builder) {
  const Segments segments(orders, length);
  const int n = segments.members();
  for (int tick = 0; tick + 1 < n; ++tick) {
    for (int s = 0; s < segments.rings(); ++s) {
      for (int r = 0; r < n; ++r) {
        builder->Copy(orders[s][(r + n - 1) % n], orders[s][r], segments.Of(s, r + n - 1 - tick));
      }
    }
    builder->EndTick();
  }
}

// Hop h pairs members at distance 2^h; the left one keeps the first half of what both have. With
// N = P + E members, P the largest power of two, the first E members first add the last E's values
// to their own, and send them the result.
void AddHalvingDoubling(Members members, size_t length, ScheduleBuilder* builder) {
  const int n = static_cast<int>(members.size());
  if (n < 2) return;
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
  const int hops = std::countr_zero(static_cast<unsigned>(power));
  for (int extra = power; extra < n; ++extra) {
    const int terms[] = {members[extra - power], members[extra]};
    builder->Sum(terms[0], {0, length}, terms, /*is_total=*/false);
  }
  builder->EndTick();
  // Blocks of the padded vector: [first, first + count) of `power` equal ones.
  const auto range = [&](int first, int count) {
    const ElementRange begin = PaddedPiece(length, power, first);
    const ElementRange last = PaddedPiece(length, power, first + count - 1);
    return ElementRange{begin.first, last.first + last.count - begin.first};
  };
  std::vector<int> kept(power, 0);  // first block that each one has
  for (int hop = 0; hop < hops; ++hop) {
    const int half = power >> (hop + 1);
    for (int left = 0; left < power; ++left) {
      const int right = left + (1 << hop);
      if ((left >> hop) % 2 == 1) continue;
      const int terms[] = {members[left], members[right]};
      const bool is_total = hop + 1 == hops;
      builder->Sum(terms[0], range(kept[left], half), terms, is_total);
      builder->Sum(terms[1], range(kept[left] + half, half), terms, is_total);
      kept[right] = kept[left] + half;
    }
    builder->EndTick();
  }
  for (int hop = hops - 1; hop >= 0; --hop) {
    const int half = power >> (hop + 1);
    for (int left = 0; left < power; ++left) {
      const int right = left + (1 << hop);
      if ((left >> hop) % 2 == 1) continue;
      builder->Copy(members[left], members[right], range(kept[left], half));
      builder->Copy(members[right], members[left], range(kept[right], half));
      kept[right] = kept[left];
    }
    builder->EndTick();
  }
  for (int extra = power; extra < n; ++extra) {
    builder->Copy(members[extra - power], members[extra], {0, length});
  }
  builder->EndTick();
}

}  // namespace lockstep::worker
