#include "worker/cache/variable_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/tensor/indexed_slices.h"

namespace lockstep::worker {
namespace {

constexpr GlobalStep kNoVersion(-1);

MutableTensorView Nothing() { return {.shape = Shape({0})}; }

}  // namespace

absl::StatusOr<std::unique_ptr<VariableCache>> VariableCache::Create(
    const VariableLayout& layout, std::span<ShardSession* const> sessions, Place place,
    TensorMaker make, std::span<const int64_t> most_rows) {
  if (layout.num_shards() != sessions.size()) {
    return absl::InvalidArgumentError(absl::StrCat("placement: it is for ", layout.num_shards(),
                                                   " ps, but there are ", sessions.size()));
  }
  std::unique_ptr<VariableCache> cache(
      new VariableCache(layout, sessions, place, std::move(make), most_rows));
  cache->MakeTargets();
  return cache;
}

VariableCache::VariableCache(const VariableLayout& layout, std::span<ShardSession* const> sessions,
                             Place place, TensorMaker make, std::span<const int64_t> most_rows)
    : layout_(layout),
      place_(place),
      make_(std::move(make)),
      shards_(sessions.size()),
      versions_(sessions.size()) {
  for (size_t shard = 0; shard < sessions.size(); ++shard) {
    shards_[shard].session = sessions[shard];
  }
  for (size_t i = 0; i < layout.variables().size(); ++i) {
    const WholeVariable& variable = layout.variables()[i];
    memory_.push_back(variable.sparse ? MakeRows(variable, most_rows.empty() ? 0 : most_rows[i])
                                      : make_(variable.dtype, variable.shape));
    const TensorView whole = std::as_const(memory_.back()).view();
    views_.push_back(variable.sparse ? RowRange(whole, 0, 0) : whole);
    for (auto* rows : {&part_rows_, &next_rows_}) {
      rows->push_back(variable.sparse ? std::make_unique<PartRows>(variable) : nullptr);
    }
  }
}

Tensor VariableCache::MakeRows(const WholeVariable& variable, int64_t rows) const {
  return make_(variable.dtype, WithRows(variable.shape, rows));
}

void VariableCache::MakeTargets() {
  const std::vector<WholeVariable>& variables = layout_.variables();
  std::vector<std::vector<FetchTarget>> targets(shards_.size());
  for (size_t variable = 0; variable < variables.size(); ++variable) {
    const std::vector<VariablePart>& parts = variables[variable].parts;
    for (size_t part = 0; part < parts.size(); ++part) {
      const Target target{variable, part};
      shards_[parts[part].shard].targets.push_back(target);
      targets[parts[part].shard].push_back({.variable = parts[part].id,
                                            .value = Nothing(),
                                            .in_place = IsInPlace(target),
                                            .is_statistic = !variables[variable].trainable});
    }
  }
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard].session->SetTargets(std::move(targets[shard]));
  }
}

void VariableCache::Fetch(GlobalStep version, std::span<const std::span<const int64_t>> rows,
                          Callback<GlobalStep> done) {
  AfterAhead([this, version, rows, done = std::move(done)]() mutable {
    FetchMissing(version, rows, std::move(done));
  });
}

void VariableCache::AfterAhead(absl::AnyInvocable<void()> then) {
  {
    absl::MutexLock lock(&mutex_);
    if (ahead_.is_pending) {
      ahead_.then = std::move(then);
      return;
    }
  }
  then();
}

void VariableCache::FetchMissing(GlobalStep version, std::span<const std::span<const int64_t>> rows,
                                 Callback<GlobalStep> done) {
  absl::Status ahead;
  {
    absl::MutexLock lock(&mutex_);
    ahead = std::exchange(ahead_.status, absl::OkStatus());
  }
  if (!ahead.ok()) return done(std::move(ahead));
  const bool has_dense = std::exchange(dense_version_, kNoVersion) == version;
  // Rows come ahead with dense variables, never without.
  const bool has_rows = std::exchange(rows_version_, kNoVersion) == version;
  if (has_rows) return OnFetched(version, version, std::move(done));
  SetTargets(rows, !has_dense);
  StartFetch(version, FetchKind::kPresent,
             [this, version, done = std::move(done)](absl::StatusOr<GlobalStep> newest) mutable {
               if (!newest.ok()) return done(newest.status());
               OnFetched(version, std::max(version, *newest), std::move(done));
             });
}

void VariableCache::OnFetched(GlobalStep version, GlobalStep newest, Callback<GlobalStep> done) {
  part_rows_.swap(next_rows_);
  if (newest == version) dense_version_ = version;
  done(newest);
}

void VariableCache::FetchAhead(GlobalStep version, std::span<const std::span<const int64_t>> rows) {
  {
    absl::MutexLock lock(&mutex_);
    LOCKSTEP_CHECK(!std::exchange(ahead_.is_pending, true));
  }
  if (rows.empty()) {
    ApplyTargets(/*with_dense=*/true, /*with_rows=*/false);
  } else {
    SetTargets(rows, /*with_dense=*/true);
  }
  dense_version_ = rows_version_ = kNoVersion;
  StartFetch(version, FetchKind::kAhead, [this, version](const absl::StatusOr<GlobalStep>& newest) {
    OnAhead(version, newest.status());
  });
}

void VariableCache::OnAhead(GlobalStep wanted, const absl::Status& status) {
  if (status.ok()) {
    const auto [oldest, newest] = std::ranges::minmax_element(fetched_);
    if (*oldest == *newest) {
      dense_version_ = *newest;
      // A later step has another batch, with other rows.
      if (fetches_rows_ && *newest == wanted) rows_version_ = wanted;
    }
  }
  absl::AnyInvocable<void()> then;
  {
    absl::MutexLock lock(&mutex_);
    ahead_.is_pending = false;
    ahead_.status = status;
    then = std::exchange(ahead_.then, nullptr);
  }
  if (then) then();
}

void VariableCache::FetchNewest(std::span<const std::span<const int64_t>> rows,
                                Callback<GlobalStep> done) {
  SetTargets(rows, /*with_dense=*/true);
  EnsureTargets();
  StartFetch(kNoVersion, FetchKind::kPresent,
             [this, done = std::move(done)](absl::StatusOr<GlobalStep> newest) mutable {
               if (newest.ok()) part_rows_.swap(next_rows_);
               done(std::move(newest));
             });
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
  ApplyTargets(with_dense, /*with_rows=*/true);
}

void VariableCache::ApplyTargets(bool with_dense, bool with_rows) {
  fetches_dense_ = with_dense;
  fetches_rows_ = with_rows;
  for (Shard& shard : shards_) {
    for (size_t k = 0; k < shard.targets.size(); ++k) {
      const auto [variable, part] = shard.targets[k];
      const bool is_sparse = layout_.variables()[variable].sparse;
      if (!(is_sparse ? with_rows : with_dense)) {
        shard.session->SetTarget(k, Nothing());
      } else if (is_sparse) {
        const PartRows::Range& range = next_rows_[variable]->of_part(part);
        shard.session->SetTarget(k, MemoryOf(shard.targets[k]), range.indices);
      } else {
        shard.session->SetTarget(k, MemoryOf(shard.targets[k]));
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
  return variable.parts[target.part].In(memory.view());
}

void VariableCache::EnsureTargets() {
  static constexpr int64_t kFirstRow[] = {0};
  for (Shard& shard : shards_) {
    const bool has_target = std::ranges::any_of(shard.targets, [this](const Target& target) {
      return MemoryOf(target).num_elements() > 0;
    });
    if (has_target || shard.targets.empty()) continue;
    if (shard.unwanted.num_elements() == 0) {
      shard.unwanted = MakeRows(layout_.variables()[shard.targets[0].variable], 1);
    }
    shard.session->SetTarget(0, shard.unwanted.view(), kFirstRow);
  }
}

void VariableCache::StartFetch(GlobalStep version, FetchKind kind, Callback<GlobalStep> done) {
  versions_.Arm(
      [this, done = std::move(done)](absl::StatusOr<std::span<const GlobalStep>> versions) mutable {
        if (!versions.ok()) return done(versions.status());
        fetched_ = *versions;
        if (place_ == kInPlace && fetches_dense_) BindMappedValues();
        done(*std::ranges::max_element(fetched_));
      });
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    shards_[shard].session->Fetch(version, kind, [this, shard](absl::StatusOr<GlobalStep> got) {
      versions_.SetAnswer(shard, std::move(got));
    });
  }
}

bool VariableCache::IsInPlace(const Target& target) const {
  const WholeVariable& variable = layout_.variables()[target.variable];
  return place_ == kInPlace && !variable.sparse && variable.parts.size() == 1;
}

void VariableCache::BindMappedValues() {
  for (const Shard& shard : shards_) {
    for (size_t k = 0; k < shard.targets.size(); ++k) {
      if (!IsInPlace(shard.targets[k])) continue;
      views_[shard.targets[k].variable].data = shard.session->Value(k);
    }
  }
}

}  // namespace lockstep::worker
