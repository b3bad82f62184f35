#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checked.h"
#include "common/base/exit_code.h"
#include "ps/shard/variable_entry.h"

namespace lockstep::ps {
namespace {

constexpr char kRemedy[] =
    ". Remedy: start more ps and part the variable among them, or give the ps more memory";

// The newest version and the next one; what does not change, and a table, is there once.
uint64_t NumValues(const CatalogEntry& entry, const UpdateRule& rule) {
  const bool is_table = entry.is_sparse && !entry.is_replicated && rule.TouchesOnlyRows();
  return entry.is_frozen || is_table ? 1 : 2;
}

uint64_t NumSlots(const CatalogEntry& entry, const UpdateRule& rule) {
  return entry.trainable && !entry.is_frozen ? rule.slots().size() : 0;
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

}  // namespace

absl::StatusOr<uint64_t> CheckMemoryNeed(const Catalog& catalog, RuleOfEntry rule_of,
                                         std::optional<uint64_t> available) {
  uint64_t total = 0;
  for (size_t i = 0; i < catalog.size(); ++i) {
    const CatalogEntry& entry = catalog[i];
    const UpdateRule& rule = rule_of(entry);
    const uint64_t num_slots = NumSlots(entry, rule);
    const auto bytes = CheckedMultiplyBytes(entry.num_bytes, NumValues(entry, rule) + num_slots);
    const auto sum = bytes ? CheckedAddBytes(total, *bytes) : std::nullopt;
    if (!sum.has_value() || (available.has_value() && *sum > *available)) {
      const std::string room =
          available ? absl::StrCat("; this process can take ", *available, " bytes") : "";
      return NoMemory(entry, absl::StrCat("its shape ", entry.shape.ToString(), ": values and ",
                                          num_slots, " slots take ", HowMuch(bytes),
                                          ", with the variables before it ", HowMuch(sum), room));
    }
    total = *sum;
  }
  return total;
}

absl::StatusOr<Tensor> MakeTensor(const CatalogEntry& entry, absl::string_view what) {
  std::optional<Tensor> made = Tensor::TryMake(entry.dtype, entry.shape);
  if (made.has_value()) return *std::move(made);
  return NoMemory(entry, absl::StrCat("the ", entry.num_bytes, " bytes of its ", what));
}

}  // namespace lockstep::ps
