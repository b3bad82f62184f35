#include "worker/cache/variable_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

constexpr GlobalStep kNoVersion(-1);

MutableTensorView Nothing() { return {.shape = Shape({0})}; }

Tensor MakeRows(const WholeVariable& variable, int64_t rows) {
  return Tensor(variable.dtype, WithRows(variable.shape, rows));
}

}  // namespace

absl::StatusOr<std::unique_ptr<VariableCache>> VariableCache::Create(
    const VariableLayout& layout, std::span<PsData* const> shards, const WorkerIdentity& identity,
    Contents contents, Place place, DType wire_type, absl::Duration patience) {
  if (layout.num_shards() != shards.size()) {
    return absl::InvalidArgumentError(absl::StrCat("placement: it is for ", layout.num_shards(),
                                                   " ps, but there are ", shards.size()));
  }
  std::unique_ptr<VariableCache> cache(new VariableCache(layout, shards.size(), place));
  PullerOptions options;
  options.identity = identity;
  options.averages = contents == kAverages;
  options.newest = contents == kNewest;
  options.wire_type = wire_type;
  options.patience = patience;
  cache->MakePullers(shards, options);
  return cache;
}

VariableCache::VariableCache(const VariableLayout& layout, size_t num_shards, Place place)
    : layout_(layout), place_(place), versions_(num_shards), shards_(num_shards) {
  for (const WholeVariable& variable : layout.variables()) {
    memory_.push_back(variable.sparse ? MakeRows(variable, 0)
                                      : Tensor(variable.dtype, variable.shape));
    views_.push_back(std::as_const(memory_.back()).view());
    for (auto* rows : {&part_rows_, &next_rows_}) {
      rows->push_back(variable.sparse ? std::make_unique<PartRows>(variable) : nullptr);
    }
  }
}

void VariableCache::MakePullers(std::span<PsData* const> shards, const PullerOptions& options) {
  const std::vector<WholeVariable>& variables = layout_.variables();
  std::vector<std::vector<PullTarget>> targets(shards.size());
  for (size_t variable = 0; variable < variables.size(); ++variable) {
    const std::vector<VariablePart>& parts = variables[variable].parts;
    for (size_t part = 0; part < parts.size(); ++part) {
      const Target target{variable, part};
      shards_[parts[part].shard].targets.push_back(target);
      targets[parts[part].shard].push_back(
          {parts[part].id, {}, {}, IsInPlace(target), !variables[variable].trainable});
    }
  }
  for (size_t shard = 0; shard < shards.size(); ++shard) {
    if (targets[shard].empty()) continue;
    shards_[shard].puller =
        std::make_unique<VariablePuller>(shards[shard], options, std::move(targets[shard]));
  }
}

absl::StatusOr<GlobalStep> VariableCache::Fetch(GlobalStep version,
                                                std::span<const std::span<const int64_t>> rows) {
  LOCKSTEP_RETURN_IF_ERROR(FinishAhead());
  const bool has_dense = std::exchange(dense_version_, kNoVersion) == version;
  // Rows come ahead with what is dense, never without.
  const bool has_rows = std::exchange(rows_version_, kNoVersion) == version;
  GlobalStep newest = version;
  if (!has_rows) {
    SetTargets(rows, !has_dense);
    StartFetch(version, PullAhead::kWindow);
    LOCKSTEP_RETURN_IF_ERROR(FinishFetch());
    newest = std::max(newest, *std::ranges::max_element(fetched_));
  }
  part_rows_.swap(next_rows_);
  if (newest == version) dense_version_ = version;
  return newest;
}

void VariableCache::FetchAhead(GlobalStep version, std::span<const std::span<const int64_t>> rows) {
  LOCKSTEP_CHECK(!is_ahead_);
  if (rows.empty()) {
    Aim(/*with_dense=*/true, /*with_rows=*/false);
  } else {
    SetTargets(rows, /*with_dense=*/true);
  }
  dense_version_ = rows_version_ = kNoVersion;
  is_ahead_ = true;
  StartFetch(version, PullAhead::kEverything);
}

absl::Status VariableCache::FetchNewest(std::span<const std::span<const int64_t>> rows) {
  LOCKSTEP_RETURN_IF_ERROR(FinishAhead());
  SetTargets(rows, /*with_dense=*/true);
  AimAtSomething();
  StartFetch(kNoVersion, PullAhead::kWindow);
  LOCKSTEP_RETURN_IF_ERROR(FinishFetch());
  part_rows_.swap(next_rows_);
  return absl::OkStatus();
}

void VariableCache::SetTargets(std::span<const std::span<const int64_t>> rows, bool with_dense) {
  const std::vector<WholeVariable>& variables = layout_.variables();
  LOCKSTEP_CHECK(rows.size() == variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].sparse) continue;
    const auto num_rows = static_cast<int64_t>(rows[i].size());
    if (memory_[i].shape().dim(0) < num_rows) memory_[i] = MakeRows(variables[i], num_rows);
    views_[i] = RowRange(std::as_const(memory_[i]).view(), 0, num_rows);
    next_rows_[i]->Divide(rows[i]);
  }
  Aim(with_dense, /*with_rows=*/true);
}

void VariableCache::Aim(bool with_dense, bool with_rows) {
  fetches_dense_ = with_dense;
  fetches_rows_ = with_rows;
  for (Shard& shard : shards_) {
    for (size_t k = 0; k < shard.targets.size(); ++k) {
      const auto [variable, part] = shard.targets[k];
      const bool is_sparse = layout_.variables()[variable].sparse;
      if (!(is_sparse ? with_rows : with_dense)) {
        shard.puller->SetTarget(k, Nothing());
      } else if (is_sparse) {
        const PartRows::Range& range = next_rows_[variable]->of_part(part);
        shard.puller->SetTarget(k, MemoryOf(shard.targets[k]), range.indices);
      } else {
        shard.puller->SetTarget(k, MemoryOf(shard.targets[k]));
      }
    }
  }
}

MutableTensorView VariableCache::MemoryOf(const Target& target) {
  const WholeVariable& variable = layout_.variables()[target.variable];
  Tensor& memory = memory_[target.variable];
  if (variable.sparse) {
    const PartRows::Range& range = next_rows_[target.variable]->of_part(target.part);
    return RowRange(memory.view(), static_cast<int64_t>(range.begin),
                    static_cast<int64_t>(range.indices.size()));
  }
  if (variable.parts.size() == 1) return memory.view();
  const VariablePart& part = variable.parts[target.part];
  return RowRange(memory.view(), part.first_row, part.num_rows);
}

void VariableCache::AimAtSomething() {
  static constexpr int64_t kFirstRow[] = {0};
  for (Shard& shard : shards_) {
    const bool is_aimed = std::ranges::any_of(shard.targets, [this](const Target& target) {
      return MemoryOf(target).num_elements() > 0;
    });
    if (is_aimed || shard.puller == nullptr) continue;
    if (shard.unwanted.num_elements() == 0) {
      shard.unwanted = MakeRows(layout_.variables()[shard.targets[0].variable], 1);
    }
    shard.puller->SetTarget(0, shard.unwanted.view(), kFirstRow);
  }
}

void VariableCache::StartFetch(GlobalStep version, PullAhead ahead) {
  versions_.Expect(shards_.size());
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    const auto tell = [this, shard](absl::StatusOr<GlobalStep> got) {
      versions_.Tell(shard, std::move(got));
    };
    if (shards_[shard].puller == nullptr) {
      tell(version);
    } else {
      shards_[shard].puller->Fetch(version, tell, ahead);
    }
  }
}

absl::Status VariableCache::FinishFetch() {
  LOCKSTEP_ASSIGN_OR_RETURN(fetched_, versions_.Wait());
  if (place_ == kInPlace && fetches_dense_) BindMappedValues();
  return absl::OkStatus();
}

bool VariableCache::IsInPlace(const Target& target) const {
  const WholeVariable& variable = layout_.variables()[target.variable];
  return place_ == kInPlace && !variable.sparse && variable.parts.size() == 1;
}

void VariableCache::BindMappedValues() {
  for (const Shard& shard : shards_) {
    for (size_t k = 0; k < shard.targets.size(); ++k) {
      if (!IsInPlace(shard.targets[k])) continue;
      views_[shard.targets[k].variable].data = shard.puller->Value(k);
    }
  }
}

absl::Status VariableCache::FinishAhead() {
  if (!std::exchange(is_ahead_, false)) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(FinishFetch());
  const auto [oldest, newest] = std::ranges::minmax_element(fetched_);
  if (*oldest != *newest) return absl::OkStatus();
  dense_version_ = *newest;
  if (fetches_rows_) rows_version_ = *newest;
  return absl::OkStatus();
}

}  // namespace lockstep::worker
