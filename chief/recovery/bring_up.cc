#include "chief/recovery/bring_up.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep::chief {
namespace {

constexpr char kStartAgain[] =
    "start every ps again, and the chief with --restore to go on from a checkpoint";
// Of a large model the first variables say enough.
constexpr size_t kMissingNamed = 4;

}  // namespace

absl::StatusOr<SetViewRequest> TakeCommand(const BringUpOptions& options,
                                           const std::vector<SetViewReply>& views) {
  SetViewRequest view;
  uint64_t job = 0;
  uint64_t term = 0;
  uint64_t epoch = options.epoch.value();
  for (size_t shard = 0; shard < views.size(); ++shard) {
    const SetViewReply& seen = views[shard];
    const std::string& name = options.shard_names[shard];
    if (seen.job() != 0 && job != 0 && seen.job() != job) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, " belongs to another job than the ps before it. Remedy: ", kStartAgain));
    }
    if (seen.job() != 0) job = seen.job();
    const int64_t step = std::max(seen.shard_step(), seen.global_step());
    if (seen.has_variables() && step != options.variables.start_step()) {
      return absl::FailedPreconditionError(absl::StrCat(
          name, " is at step ", step, " of a chief that is gone, this one starts at step ",
          options.variables.start_step(), ". Remedy: ", kStartAgain));
    }
    term = std::max<uint64_t>(term, seen.term());
    epoch = std::max<uint64_t>(epoch, seen.epoch());
  }
  view.mutable_command()->set_job(job != 0 ? job : options.job);
  view.mutable_command()->set_term(term + 1);
  view.set_epoch(epoch);
  view.set_cluster(options.cluster);
  return view;
}

BringUp::BringUp(BringUpOptions options, std::vector<PsControl*> shards, Executor* executor,
                 const Clock* clock, std::function<void(absl::StatusOr<BroughtUp>)> on_done)
    : options_(std::move(options)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_done_(std::move(on_done)),
      views_(shards_.size()) {
  result_.bytes.resize(shards_.size());
}

void BringUp::Tick() {
  if (!phases_.empty()) phases_.back()->Tick();
}

std::string BringUp::DescribeWaiting() const {
  if (phases_.empty()) return "";
  const std::string waiting = phases_.back()->DescribeWaiting();
  return waiting.empty() ? waiting : absl::StrCat(waiting, DescribeMissing());
}

std::string BringUp::DescribeMissing() const {
  std::vector<std::string> missing;
  for (const VariableSpec& variable : options_.variables.placement().variables()) {
    if (creating_ == nullptr || creating_->HasAnswered(variable.shard())) continue;
    missing.push_back(variable.name());
  }
  if (missing.empty()) return "";
  const size_t named = std::min(missing.size(), kMissingNamed);
  const size_t others = missing.size() - named;
  missing.resize(named);
  return absl::StrCat("; not initialised: ", absl::StrJoin(missing, ", "),
                      others == 0 ? "" : absl::StrCat(" and ", others, " more"));
}

std::unique_ptr<ShardCalls> BringUp::Calls(ShardCalls::Call call, void (BringUp::*next)()) {
  return std::make_unique<ShardCalls>(
      options_.shard_names, clock_, std::move(call),
      [this, next](absl::Status status) { status.ok() ? (this->*next)() : on_done_(status); });
}

void BringUp::Start() {
  phases_.push_back(Calls(
      [this](size_t shard, std::function<void(absl::Status)> answered) {
        shards_[shard]->GetView(
            On<SetViewReply>(executor_, [=, this](absl::StatusOr<SetViewReply> reply) {
              if (reply.ok()) views_[shard] = *reply;
              answered(reply.status());
            }));
      },
      &BringUp::SetViews));
  phases_.back()->Start();
}

void BringUp::SetViews() {
  absl::StatusOr<SetViewRequest> view = TakeCommand(options_, views_);
  if (!view.ok()) return on_done_(view.status());
  result_.view = *std::move(view);
  phases_.push_back(Calls(
      [this](size_t shard, std::function<void(absl::Status)> answered) {
        SetViewRequest request = result_.view;
        request.set_shard(static_cast<uint32_t>(shard));
        shards_[shard]->SetView(
            request, On<SetViewReply>(executor_, [=](absl::StatusOr<SetViewReply> reply) {
              answered(reply.status());
            }));
      },
      &BringUp::Create));
  phases_.back()->Start();
}

void BringUp::Create() {
  phases_.push_back(Calls(
      [this](size_t shard, std::function<void(absl::Status)> answered) {
        CreateVariablesRequest request = options_.variables;
        *request.mutable_command() = result_.view.command();
        shards_[shard]->CreateVariables(
            request, On<CreateVariablesReply>(
                         executor_, [=, this](absl::StatusOr<CreateVariablesReply> reply) {
                           if (reply.ok()) result_.bytes[shard] = reply->bytes();
                           answered(reply.status());
                         }));
      },
      &BringUp::Finish));
  creating_ = phases_.back().get();
  phases_.back()->Start();
}

void BringUp::Finish() { on_done_(result_); }

}  // namespace lockstep::chief
