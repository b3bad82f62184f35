#include "tests/conformance/collective_cases.h"

#include <algorithm>
#include <bit>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"

namespace lockstep::conformance {
namespace {

using worker::ScheduleSpec;
using worker::Traffic;
using Floats = std::vector<float>;

size_t CeilDivide(size_t a, size_t b) { return (a + b - 1) / b; }

int MostShards(ReductionAlgorithm algorithm, const Topology& topology) {
  switch (algorithm) {
    case ReductionAlgorithm::kXring:
      return topology.towers;
    case ReductionAlgorithm::kPscpu:
    case ReductionAlgorithm::kPscpuPscpu:
      return topology.workers;
    case ReductionAlgorithm::kPsgpu:
      return topology.num_participants();
    default:
      return 1;
  }
}

bool IsForOneWorker(ReductionAlgorithm algorithm) {
  return algorithm == ReductionAlgorithm::kNccl ||
         algorithm == ReductionAlgorithm::kHierarchicalCopy;
}

int Turns(const ScheduleSpec& spec) {
  switch (spec.algorithm) {
    case ReductionAlgorithm::kPscpu:
      return CeilDivide(spec.topology.workers, spec.shards);
    case ReductionAlgorithm::kPsgpu:
      return CeilDivide(spec.topology.num_participants(), spec.shards);
    case ReductionAlgorithm::kHierarchicalCopy:
      return spec.topology.num_participants();
    default:
      return 1;
  }
}

Floats Add(const Floats& a, const Floats& b) {
  Floats sum(a.size());
  for (size_t i = 0; i < a.size(); ++i) sum[i] = a[i] + b[i];
  return sum;
}

Floats AddInOrder(const std::vector<Floats>& terms) {
  Floats sum = terms[0];
  for (size_t k = 1; k < terms.size(); ++k) sum = Add(sum, terms[k]);
  return sum;
}

// Segment k is added from the member after the one at position k of the ring on, around to it.
Floats AddInRing(const std::vector<Floats>& terms, int towers, int rings) {
  const int n = static_cast<int>(terms.size());
  const size_t length = terms[0].size();
  const size_t chunk = CeilDivide(length, n * rings);
  Floats sum(length);
  for (size_t i = 0; i < length; ++i) {
    const int segment = static_cast<int>(i / chunk) / rings;
    const int ring = static_cast<int>(i / chunk) % rings;
    const int shift = ring * std::max(1, towers / rings);
    const auto at = [&](int position) {
      const int r = position % n;
      return terms[r / towers * towers + (r % towers + shift) % towers][i];
    };
    sum[i] = at(segment + 1);
    for (int k = 2; k <= n; ++k) sum[i] = sum[i] + at(segment + k);
  }
  return sum;
}

// Neighbours first, then pairs of pairs; beyond a power of two, the last are added to the first
// before.
Floats AddInTree(std::vector<Floats> terms) {
  const size_t power = std::bit_floor(terms.size());
  for (size_t extra = power; extra < terms.size(); ++extra) {
    terms[extra - power] = Add(terms[extra - power], terms[extra]);
  }
  terms.resize(power);
  while (terms.size() > 1) {
    std::vector<Floats> next;
    for (size_t k = 0; k < terms.size(); k += 2) next.push_back(Add(terms[k], terms[k + 1]));
    terms = std::move(next);
  }
  return terms[0];
}

std::vector<Floats> AddWithinWorkers(const std::vector<Floats>& terms, int towers) {
  std::vector<Floats> sums;
  for (size_t first = 0; first < terms.size(); first += towers) {
    sums.push_back(AddInOrder({terms.begin() + first, terms.begin() + first + towers}));
  }
  return sums;
}

int64_t RingMessages(size_t length, int n, int rings) {
  if (n == 1 || length == 0) return 0;
  const size_t chunks = CeilDivide(length, CeilDivide(length, n * rings));
  return static_cast<int64_t>(2 * (n - 1) * chunks);
}

int64_t TreeMessages(size_t length, int n) {
  if (n == 1 || length == 0) return 0;
  const size_t power = std::bit_floor(static_cast<unsigned>(n));
  const size_t block = CeilDivide(length, power);
  size_t messages = 2 * (n - power);
  for (size_t pairs = power / 2; pairs >= 1; pairs /= 2) {
    messages += 2 * pairs * CeilDivide(length, block * pairs);
  }
  return static_cast<int64_t>(messages);
}

int64_t ShuffleMessages(size_t length, int n, int shards) {
  if (length == 0) return 0;
  return 2 * (n - 1) * (length >= static_cast<size_t>(shards) ? shards : 1);
}

}  // namespace

std::vector<ScheduleSpec> CollectiveCases() {
  std::vector<ScheduleSpec> cases;
  for (int n = 1; n <= 9; ++n) {
    for (int towers = 1; towers <= n; ++towers) {
      if (n % towers != 0) continue;
      for (int a = 0; a <= static_cast<int>(ReductionAlgorithm::kReductionToOne); ++a) {
        ScheduleSpec spec{static_cast<ReductionAlgorithm>(a), {n / towers, towers}};
        if (n == 1 && spec.algorithm == ReductionAlgorithm::kXring) continue;
        if (IsForOneWorker(spec.algorithm) && towers != n) continue;
        for (spec.shards = 1; spec.shards <= MostShards(spec.algorithm, spec.topology);
             ++spec.shards) {
          for (spec.index = 0; spec.index < Turns(spec); ++spec.index) cases.push_back(spec);
        }
      }
    }
  }
  return cases;
}

std::vector<size_t> LengthsFor(const ScheduleSpec& spec) {
  const size_t segments = spec.topology.num_participants() * spec.shards;
  std::set<size_t> lengths = {0, 1, 2, 97, segments, 4 * segments};
  lengths.insert({segments - 1, segments + 1, 4 * segments - 1, 4 * segments + 1});
  return {lengths.begin(), lengths.end()};
}

std::vector<Tensor> DrawVectors(DType dtype, int participants, size_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Tensor> vectors;
  for (int rank = 0; rank < participants; ++rank) {
    Tensor& vector = vectors.emplace_back(dtype, Shape({static_cast<int64_t>(length)}));
    for (size_t i = 0; i < length; ++i) {
      const float value = normal(random);
      if (dtype == DType::kFloat32) vector.as<float>()[i] = value;
      if (dtype == DType::kFloat64) vector.as<double>()[i] = value;
      if (dtype == DType::kFloat16)
        static_cast<_Float16*>(vector.data())[i] = static_cast<_Float16>(value);
      if (dtype == DType::kBFloat16)
        static_cast<uint16_t*>(vector.data())[i] =
            static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
    }
  }
  return vectors;
}

std::vector<float> ExpectedSum(const ScheduleSpec& spec, const std::vector<Tensor>& vectors) {
  std::vector<Floats> terms;
  for (const Tensor& vector : vectors) {
    terms.emplace_back(vector.as<float>().begin(), vector.as<float>().end());
  }
  const int towers = spec.topology.towers;
  switch (spec.algorithm) {
    case ReductionAlgorithm::kXring:
      return AddInRing(terms, towers, spec.shards);
    case ReductionAlgorithm::kCollective:
      return AddInRing(terms, 1, 1);
    case ReductionAlgorithm::kRechd:
      return AddInTree(terms);
    case ReductionAlgorithm::kNcclXring:
      return AddInRing(AddWithinWorkers(terms, towers), 1, 1);
    case ReductionAlgorithm::kNcclRechd:
      return AddInTree(AddWithinWorkers(terms, towers));
    case ReductionAlgorithm::kNcclPscpu:
    case ReductionAlgorithm::kPscpuPscpu:
      return AddInOrder(AddWithinWorkers(terms, towers));
    case ReductionAlgorithm::kHierarchicalCopy: {
      const auto half = terms.begin() + terms.size() / 2;
      if (half == terms.begin()) return terms[0];
      return Add(AddInOrder({terms.begin(), half}), AddInOrder({half, terms.end()}));
    }
    default:
      return AddInOrder(terms);
  }
}

Traffic ExpectedTraffic(const ScheduleSpec& spec) {
  const int n = spec.topology.num_participants();
  const int workers = spec.topology.workers;
  const auto length = static_cast<int64_t>(spec.length);
  const int64_t has_elements = length > 0 ? 1 : 0;
  const int64_t within = has_elements * 2 * workers * (spec.topology.towers - 1);
  Traffic traffic{0, 2 * (n - 1) * length};
  switch (spec.algorithm) {
    case ReductionAlgorithm::kXring:
      traffic.messages = RingMessages(length, n, spec.shards);
      break;
    case ReductionAlgorithm::kCollective:
      traffic.messages = RingMessages(length, n, 1);
      break;
    case ReductionAlgorithm::kRechd:
      traffic.messages = TreeMessages(length, n);
      break;
    case ReductionAlgorithm::kPscpu:
    case ReductionAlgorithm::kPsgpu:
      traffic.messages = ShuffleMessages(length, n, spec.shards);
      break;
    case ReductionAlgorithm::kNcclXring:
      traffic.messages = within + RingMessages(length, workers, 1);
      break;
    case ReductionAlgorithm::kNcclRechd:
      traffic.messages = within + TreeMessages(length, workers);
      break;
    case ReductionAlgorithm::kNcclPscpu:
      traffic.messages = within + ShuffleMessages(length, workers, workers);
      break;
    case ReductionAlgorithm::kPscpuPscpu:
      traffic.messages = within + ShuffleMessages(length, workers, spec.shards);
      break;
    case ReductionAlgorithm::kHierarchicalCopy: {
      const bool is_main_outside = n > 1 && n % 2 == 1 && spec.index % n == n / 2;
      traffic.messages = has_elements * (2 * (n - 1) + (is_main_outside ? 1 : 0));
      traffic.elements = traffic.messages * length;
      break;
    }
    case ReductionAlgorithm::kNccl:
    case ReductionAlgorithm::kReductionToOne:
      traffic.messages = has_elements * 2 * (n - 1);
      break;
    case ReductionAlgorithm::kGather:
      traffic = {RingMessages(length, n, 1) / 2, (n - 1) * length};
      break;
  }
  return traffic;
}

std::string Describe(const ScheduleSpec& spec) {
  return absl::StrCat(Name(spec.algorithm), "#", spec.shards, ", ", spec.topology.workers, " x ",
                      spec.topology.towers, ", index ", spec.index, ", length ", spec.length);
}

}  // namespace lockstep::conformance
