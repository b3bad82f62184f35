#include "chief/copies/pair_view.h"

#include <algorithm>
#include <optional>

namespace lockstep::chief {
namespace {

bool Serves(const absl::StatusOr<SetViewReply>& of) {
  return of.ok() && of->has_variables() && of->role() == PRIMARY;
}

// Has all that `primary` has published.
bool IsCompleteCopy(const SetViewReply& copy, const SetViewReply& primary) {
  return copy.has_variables() && copy.role() == COPY && !copy.awaits_state() &&
         copy.epoch() == primary.epoch() && copy.job() == primary.job();
}

// Of two that serve one is a ps that another one has replaced, and that does not know it. It had a
// copy: the one that was promoted, alone, in the epoch of both. Where both have one, an answer is
// outdated: the ps that was replaced has become the other one's copy meanwhile.
std::optional<PlaceIndex> FindServing(const PlaceAnswers& answers) {
  const bool home = Serves(answers[kHome]);
  const bool host = Serves(answers[kHost]);
  if (!home && !host) return std::nullopt;
  if (home != host) return home ? kHome : kHost;
  if (answers[kHome]->epoch() != answers[kHost]->epoch()) {
    return answers[kHome]->epoch() > answers[kHost]->epoch() ? kHome : kHost;
  }
  return answers[kHost]->has_copy() && !answers[kHome]->has_copy() ? kHome : kHost;
}

// Both terms count for the next one. One that was started again knows no job.
PairView ViewOf(PairState state, PlaceIndex serving, const PlaceAnswers& answers) {
  const absl::StatusOr<SetViewReply>& other = answers[OtherPlace(serving)];
  PairView view{state, serving, *answers[serving]};
  if (!other.ok()) return view;
  view.reply.set_term(std::max(view.reply.term(), other->term()));
  if (view.reply.job() == 0) view.reply.set_job(other->job());
  return view;
}

// Of a place that has variables of the lost shard's epoch.
void NoteVariables(const SetViewReply& place, SetViewReply* shard) {
  shard->set_awaits_state(true);
  shard->set_start_step(place.start_step());
  shard->set_shard_step(std::max(shard->shard_step(), place.shard_step()));
  shard->set_global_step(std::max(shard->global_step(), place.global_step()));
}

}  // namespace

absl::StatusOr<PairView> JudgePair(const PlaceAnswers& answers) {
  const std::optional<PlaceIndex> serving = FindServing(answers);
  if (serving.has_value()) {
    const SetViewReply& primary = *answers[*serving];
    const absl::StatusOr<SetViewReply>& other = answers[OtherPlace(*serving)];
    if (Serves(other) && other->epoch() == primary.epoch() && primary.has_copy()) {
      return absl::UnavailableError("two ps say that they serve the shard. Remedy: ask again");
    }
    const bool is_over = other.ok() && other->epoch() > primary.epoch();
    // A ps that serves too has been replaced by this one. One that is deposed serves nobody.
    const bool is_alone = !primary.has_copy() || Serves(other) ||
                          (other.ok() && other->has_variables() && other->awaits_state());
    if (is_alone && !is_over && !primary.is_deposed())
      return ViewOf(PairState::kAlone, *serving, answers);
    if (other.ok() && IsCompleteCopy(*other, primary)) {
      return ViewOf(PairState::kPair, *serving, answers);
    }
  }
  for (const absl::StatusOr<SetViewReply>& answer : answers) {
    if (!answer.ok()) return answer.status();
  }
  // The one that is left may lack steps that the other one has shown.
  PairView view = ViewOf(PairState::kPair, kHome, answers);
  view.reply.set_has_variables(false);
  view.reply.set_awaits_state(false);
  view.reply.set_start_step(0);
  view.reply.set_shard_step(0);
  view.reply.set_global_step(0);
  view.reply.set_epoch(std::max(answers[kHome]->epoch(), answers[kHost]->epoch()));
  for (const absl::StatusOr<SetViewReply>& answer : answers) {
    const bool has_newest = answer->has_variables() && answer->epoch() == view.reply.epoch();
    if (has_newest) NoteVariables(*answer, &view.reply);
  }
  return view;
}

}  // namespace lockstep::chief
