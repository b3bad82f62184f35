#include "tests/sim/invariants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/update/dense_update.h"

namespace lockstep::sim {
namespace {

std::optional<std::string> Named(const char* name, const std::optional<std::string>& broken) {
  if (!broken.has_value()) return std::nullopt;
  return absl::StrCat(name, ": ", *broken);
}

// Ranges of a large variable close before the rest of it.
bool MayShowEarly(const SimOptions& options) {
  constexpr auto kRangeElements = static_cast<int64_t>(DenseUpdate::kRangeBytes / sizeof(float));
  return std::ranges::any_of(options.variables,
                             [](int64_t elements) { return elements > kRangeElements; });
}

}  // namespace

Invariants::Invariants(const SimOptions* options, const History* history)
    : options_(options), history_(history), last_(options->ps) {}

std::optional<std::string> Invariants::Check(const std::vector<const ps::Shard*>& shards) {
  std::vector<ps::ShardState> now;
  now.reserve(shards.size());
  for (const ps::Shard* const shard : shards) now.push_back(shard->GetView());
  std::optional<std::string> broken = CheckViews();
  if (!broken) broken = Named("step", CheckSteps(now));
  if (!broken) broken = Named("commit", CheckCommit(now));
  if (!broken) broken = Named("token", CheckTokens(now));
  if (!broken) broken = CheckGradients(now);
  if (!broken) broken = CheckValues(now);
  if (!broken) broken = Named("checkpoint", CheckCheckpoints());
  last_ = std::move(now);
  return broken;
}

std::optional<std::string> Invariants::CheckViews() {
  for (; views_ < history_->views.size(); ++views_) {
    const AcceptedView& view = history_->views[views_];
    const auto [chief, is_new] =
        chief_of_term_.try_emplace({view.ps.incarnation, view.term}, view.chief);
    if (!is_new && chief->second != view.chief) {
      return absl::StrCat("term: ps ", view.ps.shard, " took views of term ", view.term.value(),
                          " from two chiefs");
    }
    AcceptedView& last = newest_view_.try_emplace(view.ps.incarnation, view).first->second;
    if (std::tie(view.epoch, view.term) < std::tie(last.epoch, last.term) ||
        view.term < last.term || (view.term == last.term && view.number < last.number)) {
      return absl::StrCat("view: ps ", view.ps.shard, " took view ", view.number, " of term ",
                          view.term.value(), ", epoch ", view.epoch.value(), " after view ",
                          last.number, " of term ", last.term.value(), ", epoch ",
                          last.epoch.value());
    }
    last = view;
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckSteps(const std::vector<ps::ShardState>& now) const {
  for (size_t i = 0; i < now.size(); ++i) {
    const bool is_same =
        now[i].epoch == last_[i].epoch && now[i].has_variables && last_[i].has_variables;
    if (!is_same) continue;
    if (now[i].shard_step < last_[i].shard_step || now[i].global_step < last_[i].global_step) {
      return absl::StrCat("ps ", i, " went back from step ", last_[i].shard_step.value(), " to ",
                          now[i].shard_step.value());
    }
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckCommit(const std::vector<ps::ShardState>& now) const {
  if (options_->asynchronous) return std::nullopt;
  for (size_t i = 0; i < now.size(); ++i) {
    if (!now[i].has_variables || !now[0].has_variables || now[i].epoch != now[0].epoch) continue;
    const GlobalStep committed = now[0].global_step;
    const GlobalStep closed = now[i].shard_step;
    // One that takes no gradients closes each step that is granted: this one and the next. In a
    // replicated job the step shard alone takes any, of the loss.
    const bool is_idle = i >= (options_->replicated ? 1 : options_->variables.size());
    const GlobalStep furthest = is_idle ? committed.next().next() : committed.next();
    if (closed < committed || closed > furthest) {
      return absl::StrCat("ps ", i, " is at step ", closed.value(), ", the global step is ",
                          committed.value());
    }
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckTokens(const std::vector<ps::ShardState>& now) {
  for (; tokens_ < history_->tokens.size(); ++tokens_) {
    const HandedOut& token = history_->tokens[tokens_];
    if (token.step > now[0].global_step) {
      return absl::StrCat("worker ", token.worker.value(), " got token ", token.step.value(),
                          ", the global step is ", now[0].global_step.value());
    }
    const auto [newest, is_new] = newest_token_.try_emplace(token.incarnation, token.step);
    if (is_new) continue;
    const bool may_repeat = options_->token_policy == FIFO;
    if (token.step < newest->second || (token.step == newest->second && !may_repeat)) {
      return absl::StrCat("worker ", token.worker.value(), " got token ", token.step.value(),
                          " after token ", newest->second.value());
    }
    newest->second = token.step;
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckGradients(const std::vector<ps::ShardState>& now) {
  for (; judged_ < history_->judged.size(); ++judged_) {
    const Judged& gradient = history_->judged[judged_];
    const bool is_loss = gradient.variable >= options_->variables.size();
    const ps::ShardState& shard = now[is_loss ? kStepShard : gradient.variable % options_->ps];
    if (gradient.accepted && gradient.epoch != shard.epoch) {
      return absl::StrCat("epoch: variable ", gradient.variable, " accepted a gradient of epoch ",
                          gradient.epoch.value(), " in epoch ", shard.epoch.value());
    }
    const bool is_once =
        options_->asynchronous || options_->token_policy != PER_REPLICA ||
        counted_.insert({gradient.variable, gradient.incarnation, gradient.stamp}).second;
    if (!is_once) {
      return absl::StrCat("counted: worker ", gradient.worker.value(), " pushed variable ",
                          gradient.variable, " twice in step ", gradient.stamp.value());
    }
    ExpectedValues* const expected = FindExpected(gradient.epoch, now);
    if (expected == nullptr) continue;
    if (auto broken = Named("values", expected->Add(gradient))) return broken;
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckValues(const std::vector<ps::ShardState>& now) {
  for (; pulled_ < history_->pulled.size(); ++pulled_) {
    const Pulled& pulled = history_->pulled[pulled_];
    ExpectedValues* const expected = FindExpected(pulled.epoch, now);
    if (expected == nullptr) {
      return absl::StrCat("epoch: epoch ", pulled.epoch.value(),
                          " has values that no epoch before it had");
    }
    if (MayShowEarly(*options_) && !expected->Knows(pulled.variable, pulled.version)) {
      ++shown_early_;
      early_.push_back(pulled);
      continue;
    }
    if (auto broken = Named("values", expected->Compare(pulled))) return broken;
  }
  if (auto broken = CompareEarly(now)) return broken;
  if (!now[0].has_variables) return std::nullopt;
  ExpectedValues* const expected = FindExpected(now[0].epoch, now);
  if (expected == nullptr) return std::nullopt;
  return Named("values", expected->Close(now[0].global_step));
}

std::optional<std::string> Invariants::CompareEarly(const std::vector<ps::ShardState>& now) {
  for (size_t i = 0; i < early_.size();) {
    ExpectedValues* const expected = FindExpected(early_[i].epoch, now);
    if (!expected->Knows(early_[i].variable, early_[i].version)) {
      ++i;
      continue;
    }
    if (auto broken = Named("values", expected->Compare(early_[i]))) return broken;
    early_.erase(early_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckCheckpoints() {
  if (std::exchange(releases_, history_->releases) == history_->releases) return std::nullopt;
  if (options_->save_every == 0) return std::nullopt;
  std::vector<std::string> warnings;
  const absl::StatusOr<std::string> newest = ResolveCheckpoint(options_->checkpoints, &warnings);
  if (!warnings.empty()) return warnings[0];
  if (newest.ok() || absl::IsNotFound(newest.status())) return std::nullopt;
  return newest.status().ToString();
}

ExpectedValues* Invariants::FindExpected(Epoch epoch, const std::vector<ps::ShardState>& now) {
  const auto found = expected_.find(epoch);
  if (found != expected_.end()) return &found->second;
  if (expected_.empty()) return &expected_.emplace(epoch, ExpectedValues(options_)).first->second;
  const auto begun = std::ranges::find_if(now, [&](const ps::ShardState& shard) {
    return shard.epoch == epoch && shard.has_variables;
  });
  if (begun == now.end()) return nullptr;
  for (auto before = expected_.rbegin(); before != expected_.rend(); ++before) {
    if (auto back = before->second.BackAt(begun->start_step)) {
      return &expected_.emplace(epoch, *std::move(back)).first->second;
    }
  }
  return nullptr;
}

}  // namespace lockstep::sim
