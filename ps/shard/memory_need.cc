#include "ps/shard/memory_need.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/checked.h"
#include "common/base/exit_code.h"
#include "ps/shard/gradient_receiver.h"

namespace lockstep::ps {
namespace {

constexpr char kRemedy[] =
    ". Remedy: start more ps and part the variable among them, or give the ps more memory";

// Messages from one worker: four of half a MiB, and gRPC's buffer.
constexpr uint64_t kInFlight = uint64_t{6} << 20;

// Tensors of a variable's size.
struct Tensors {
  uint64_t values = 0;
  uint64_t slots = 0;
  uint64_t means = 0;
  uint64_t gradients = 0;  // of the type in which they travel
};

// Whether a gradient stays in the messages that brought it, and goes with its variable's step.
bool StaysInMessages(const CatalogEntry& entry, const EpochConfig& config) {
  return !config.shares_values() && entry.num_bytes >= kLeastInParts;
}

bool IsDense(const CatalogEntry& entry) { return entry.TakesGradients() && !entry.is_sparse; }

// The newest version and the next one; what does not change, and a table, is there once. In shared
// memory the version before them stays beside the next one.
uint64_t NumValues(const CatalogEntry& entry, const UpdateRule& rule, bool shares_values) {
  const bool is_table = entry.is_sparse && !entry.is_replicated && rule.TouchesOnlyRows();
  if (entry.is_frozen || is_table) return 1;
  return std::max<uint64_t>(2, shares_values ? NumSharedBuffers(entry, rule) : 0);
}

uint64_t NumSlots(const CatalogEntry& entry, const UpdateRule& rule) {
  return entry.trainable && !entry.is_frozen ? rule.slots().size() : 0;
}

Tensors TensorsOf(const CatalogEntry& entry, const UpdateRule& rule, const EpochConfig& config,
                  bool is_copy) {
  Tensors tensors{.values = NumValues(entry, rule, config.shares_values()),
                  .slots = NumSlots(entry, rule)};
  if (!IsDense(entry)) return tensors;
  tensors.means = config.has_copies() && !is_copy ? 1 : 0;
  // A copy holds the means of a step, until it serves the workers.
  const uint64_t gradients = is_copy ? 1 : config.gradients_of_step();
  // Ranges that are applied as soon as all have sent them need not be there together.
  const bool may_go_early = config.applies_early_chunks() && StaysInMessages(entry, config);
  const bool may_be_elsewhere = config.shares_values() && config.may_borrow();
  tensors.gradients = may_go_early || may_be_elsewhere ? 0 : gradients;
  return tensors;
}

// Half of its size, where gradients may travel so.
uint64_t GradientBytes(const CatalogEntry& entry, const EpochConfig& config) {
  const DataType type = config.transport().wire_type();
  const bool is_half = (type == BFLOAT16 || type == FLOAT16) && entry.MayBe(DType::kBFloat16);
  return is_half ? entry.BytesAs(DType::kBFloat16) : entry.num_bytes;
}

std::string Describe(const Tensors& tensors) {
  std::vector<std::string> parts = {absl::StrCat(tensors.values, " values"),
                                    absl::StrCat(tensors.slots, " slots")};
  if (tensors.gradients > 0) parts.push_back(absl::StrCat(tensors.gradients, " gradients"));
  if (tensors.means > 0) parts.push_back("the mean for its copy");
  return absl::StrJoin(parts, ", ");
}

// A ps that had enough before may have it again: what others on its host hold of an epoch that is
// over goes when they know of the next. Otherwise the configuration is at fault.
absl::Status NoMemory(const CatalogEntry& entry, const std::string& what) {
  return WithExitCode(
      absl::ResourceExhaustedError(absl::StrCat(Quoted(entry), ": no memory for ", what, kRemedy)),
      ExitCode::kBadConfiguration);
}

std::string HowMuch(std::optional<uint64_t> bytes) {
  return bytes.has_value() ? absl::StrCat(*bytes, " bytes") : "more bytes than can be counted";
}

// What a variable takes, and what it takes with those before it. Large gradients are there for one
// variable at a time, so of these `sum` has the most. nullopt: more than can be counted.
struct Need {
  Tensors tensors;
  std::optional<uint64_t> bytes;
  std::optional<uint64_t> sum;
  uint64_t gradients = 0;  // of the sum
};

std::vector<Need> NeedsOf(const EpochVariables& variables, RuleOfEntry rule_of,
                          const ShardOptions& options, bool is_copy) {
  // For gradients.
  uint64_t budget = options.held_bytes_budget > 0 ? options.held_bytes_budget
                                                  : std::numeric_limits<uint64_t>::max();
  std::vector<Need> needs;
  std::optional<uint64_t> kept = 0;  // all but gradients that stay in messages
  std::optional<uint64_t> sum = 0;
  uint64_t most_in_messages = 0;
  uint64_t copied = 0;  // of gradients that do not stay in messages
  for (size_t i = 0; i < variables.catalog.size() && sum.has_value(); ++i) {
    const CatalogEntry& entry = variables.catalog[i];
    const Tensors tensors = TensorsOf(entry, rule_of(entry), variables.config, is_copy);
    const auto own =
        CheckedMultiplyBytes(entry.num_bytes, tensors.values + tensors.slots + tensors.means);
    auto held = CheckedMultiplyBytes(GradientBytes(entry, variables.config), tensors.gradients);
    if (held.has_value()) *held = std::min(*held, budget);
    const auto bytes = own && held ? CheckedAddBytes(*own, *held) : std::nullopt;
    const bool in_messages = StaysInMessages(entry, variables.config);
    if (bytes.has_value() && in_messages) most_in_messages = std::max(most_in_messages, *held);
    if (bytes.has_value() && !in_messages) {
      budget -= *held;
      copied += *held;
    }
    kept = bytes ? CheckedAddBytes(*kept, in_messages ? *own : *bytes) : std::nullopt;
    sum = kept ? CheckedAddBytes(*kept, most_in_messages) : std::nullopt;
    needs.push_back({tensors, bytes, sum, copied + most_in_messages});
  }
  return needs;
}

absl::Status DoesNotFit(const CatalogEntry& entry, const Need& need, const std::string& room) {
  return NoMemory(entry, absl::StrCat("its shape ", entry.shape.ToString(), ": ",
                                      Describe(need.tensors), " take ", HowMuch(need.bytes),
                                      ", with the variables before it ", HowMuch(need.sum), room));
}

std::string RoomOf(const MemoryClaims::Answer& answer) {
  const std::string others =
      answer.claimed == 0
          ? ""
          : absl::StrCat(" beside the ", answer.claimed, " bytes of the other shard that it keeps");
  return absl::StrCat("; this process can take ", answer.room, " bytes", others);
}

}  // namespace

absl::StatusOr<ClaimedMemory> ClaimMemory(const EpochVariables& variables, RuleOfEntry rule_of,
                                          const ShardOptions& options, bool is_copy) {
  const std::vector<Need> needs = NeedsOf(variables, rule_of, options, is_copy);
  if (needs.empty()) return ClaimedMemory();
  if (!needs.back().sum.has_value()) {
    return DoesNotFit(variables.catalog[needs.size() - 1], needs.back(), "");
  }
  ClaimedMemory claimed{.bytes = *needs.back().sum, .gradients = needs.back().gradients};
  if (options.memory == nullptr) return claimed;
  MemoryClaims::Answer answer = options.memory->Claim(claimed.bytes);
  if (answer.claim != nullptr) {
    claimed.claim = std::move(answer.claim);
    return claimed;
  }
  const auto first =
      std::ranges::find_if(needs, [&answer](const Need& need) { return *need.sum > answer.room; });
  return DoesNotFit(variables.catalog[first - needs.begin()], *first, RoomOf(answer));
}

std::function<uint64_t(uint32_t)> GradientLimit(const MemoryClaims* memory,
                                                const ClaimedMemory& claimed) {
  return [memory, bytes = claimed.bytes, gradients = claimed.gradients](uint32_t replicas) {
    const std::optional<uint64_t> in_flight = CheckedMultiplyBytes(replicas, kInFlight);
    const std::optional<uint64_t> room = CheckedAddBytes(memory->ShareOf(bytes), gradients);
    if (!room.has_value()) return std::numeric_limits<uint64_t>::max();
    return *room - std::min(*room, in_flight.value_or(*room));
  };
}

absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what) {
  std::optional<Tensor> made = Tensor::TryMake(entry.dtype, entry.shape);
  if (made.has_value()) return *std::move(made);
  return NoMemory(entry, absl::StrCat("the ", entry.num_bytes, " bytes of its ", what));
}

}  // namespace lockstep::ps
