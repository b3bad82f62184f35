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

uint32_t ShardOf(uint32_t variable, const SimOptions& options) {
  const bool is_loss = variable >= options.variables.size();
  return is_loss ? kStepShard : variable % options.ps;
}

// Ranges of a large variable close before the rest of it.
bool MayShowEarly(const SimOptions& options) {
  constexpr auto kRangeElements = static_cast<int64_t>(DenseUpdate::kRangeBytes / sizeof(float));
  return std::ranges::any_of(options.variables,
                             [](int64_t elements) { return elements > kRangeElements; });
}

}  // namespace

Invariants::Invariants(const SimOptions* options, const History* history)
    : options_(options),
      history_(history),
      last_(options->ps),
      server_(options->ps),
      last_server_(options->ps) {}

std::optional<std::string> Invariants::Check(const std::vector<SimPsServer*>& serving,
                                             const std::vector<SimPsServer*>& servers,
                                             const CopyInvariants& means) {
  std::vector<ps::ShardState> now;
  now.reserve(serving.size());
  last_server_ = server_;
  for (size_t i = 0; i < serving.size(); ++i) {
    now.push_back(serving[i]->shard().GetView());
    server_[i] = serving[i]->id().incarnation;
  }
  if (now[0].epoch != committed_.first) committed_ = {now[0].epoch, now[0].global_step};
  NoteCommits(servers);
  std::optional<std::string> broken = CheckViews();
  if (!broken) broken = Named("values", CheckTakeOvers(now, means));
  if (!broken) broken = Named("step", CheckSteps(now));
  if (!broken) broken = Named("commit", CheckCommit(now));
  if (!broken) broken = Named("token", CheckTokens());
  if (!broken) broken = CheckGradients(now);
  if (!broken) broken = CheckValues(now);
  if (!broken) broken = Named("checkpoint", CheckCheckpoints());
  last_ = std::move(now);
  return broken;
}

// A copy that takes over is told the last commit again. Before that, the same commit may reach the
// ps that it replaces, which then hands out the tokens.
void Invariants::NoteCommits(const std::vector<SimPsServer*>& servers) {
  for (const SimPsServer* const server : servers) {
    if (!server->is_alive() || server->id().shard != kStepShard) continue;
    const ps::ShardState state = server->shard().GetView();
    if (state.epoch != committed_.first) continue;
    committed_.second = std::max(committed_.second, state.global_step);
  }
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
    if (auto broken = replica_views_.Add(view)) return absl::StrCat("replicas: ", *broken);
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::FindShare(Judged* gradient) const {
  const ReplicaView* const view = replica_views_.At(gradient->epoch, gradient->stamp);
  if (view == nullptr) return std::nullopt;
  gradient->share = view->ShareOf(gradient->worker);
  if (gradient->share->takes_part() || !gradient->accepted) return std::nullopt;
  return absl::StrCat("worker ", gradient->worker.value(), " has no share of step ",
                      gradient->stamp.value(), ", and its gradient was accepted");
}

std::optional<std::string> Invariants::CheckTakeOvers(const std::vector<ps::ShardState>& now,
                                                      const CopyInvariants& means) {
  for (size_t shard = 0; shard < now.size(); ++shard) {
    const bool takes_over = options_->copies && server_[shard] != last_server_[shard] &&
                            now[shard].epoch == last_[shard].epoch;
    ExpectedValues* const expected = takes_over ? FindExpected(now[shard].epoch, now) : nullptr;
    if (expected == nullptr) continue;
    for (uint32_t variable = 0; variable <= options_->variables.size(); ++variable) {
      if (ShardOf(variable, *options_) != shard) continue;
      const auto mean = means.LastMean(server_[shard], now[shard].epoch, variable);
      const GlobalStep version = mean.has_value() ? mean->next() : now[shard].start_step;
      if (auto broken = expected->TakeOver(variable, version)) return broken;
    }
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckSteps(const std::vector<ps::ShardState>& now) const {
  for (size_t i = 0; i < now.size(); ++i) {
    const bool is_same =
        now[i].epoch == last_[i].epoch && now[i].has_variables && last_[i].has_variables;
    if (!is_same) continue;
    const bool is_server = server_[i] == last_server_[i];
    if (now[i].shard_step < last_[i].shard_step ||
        (is_server && now[i].global_step < last_[i].global_step)) {
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
    const GlobalStep committed = committed_.second;
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

std::optional<std::string> Invariants::CheckTokens() {
  for (; tokens_ < history_->tokens.size(); ++tokens_) {
    const HandedOut& token = history_->tokens[tokens_];
    if (token.step > committed_.second) {
      return absl::StrCat("worker ", token.worker.value(), " got token ", token.step.value(),
                          ", the global step is ", committed_.second.value());
    }
    // One that was stopped, and does not know that it is replaced, answers those who have moved on.
    if (options_->copies && token.server != server_[kStepShard]) continue;
    const auto [newest, is_new] = newest_token_.try_emplace(token.incarnation, token);
    if (is_new) continue;
    const HandedOut last = newest->second;
    const bool is_fifo = options_->token_policy == FIFO;
    // A copy that takes over answers a call that came late: nobody waits for it.
    if (!is_fifo && token.dequeue_seq < last.dequeue_seq) continue;
    newest->second = token;
    // It gives the one before once more, also to who has not got it because of such a call.
    const bool is_same = token.dequeue_seq == last.dequeue_seq && token.step == last.step;
    const bool may_repeat = is_fifo || is_same || token.held < token.step;
    if (token.step > last.step || (token.step == last.step && may_repeat)) continue;
    return absl::StrCat("worker ", token.worker.value(), " got token ", token.step.value(),
                        " after token ", last.step.value());
  }
  return std::nullopt;
}

std::optional<std::string> Invariants::CheckGradients(const std::vector<ps::ShardState>& now) {
  for (; judged_ < history_->judged.size(); ++judged_) {
    Judged gradient = history_->judged[judged_];
    const uint32_t index = ShardOf(gradient.variable, *options_);
    const ps::ShardState& shard = now[index];
    // A ps that does not know yet that its copy serves shows nothing of what it accepts.
    if (options_->copies && gradient.server != server_[index]) continue;
    if (gradient.accepted && gradient.epoch != shard.epoch) {
      return absl::StrCat("epoch: variable ", gradient.variable, " accepted a gradient of epoch ",
                          gradient.epoch.value(), " in epoch ", shard.epoch.value());
    }
    const bool is_once =
        options_->asynchronous || options_->token_policy != PER_REPLICA ||
        counted_.insert({gradient.server, gradient.variable, gradient.incarnation, gradient.stamp})
            .second;
    if (!is_once) {
      return absl::StrCat("counted: worker ", gradient.worker.value(), " pushed variable ",
                          gradient.variable, " twice in step ", gradient.stamp.value());
    }
    if (auto broken = Named("replicas", FindShare(&gradient))) return broken;
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
  return Named("values", expected->Close(committed_.second));
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
  // What the workers of a replicated job store need not have been read by anybody.
  if (!options_->replicated) return nullptr;
  return &expected_.emplace(epoch, ExpectedValues(options_)).first->second;
}

}  // namespace lockstep::sim
