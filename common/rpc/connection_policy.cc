#include "common/rpc/connection_policy.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::rpc {
namespace {

// A worker sends at most 4 chunks of a gradient to a ps at once, and small calls beside them.
constexpr int64_t kMaxUnfinished = 64;
// Of all connections: 64 workers that send 4 chunks each.
constexpr int64_t kMaxUnfinishedInAll = 256;
// Beyond these numbers: without a whole message for that long, a connection is not of use.
constexpr absl::Duration kStalled = absl::Seconds(1);
// The longest deadline of a call with a large message is 60 s.
constexpr absl::Duration kMaxAge = absl::Minutes(2);
// A client that has something to ask does so within milliseconds.
constexpr absl::Duration kIdle = absl::Seconds(10);
constexpr absl::Duration kIdleWithoutCall = absl::Seconds(2);

}  // namespace

ConnectionPolicy::Unfinished ConnectionPolicy::Update(const ConnectionCounters& counters,
                                                      absl::Duration now, History* history) {
  const int64_t open = counters.started - counters.succeeded - counters.failed;
  const int64_t with_message = std::max<int64_t>(0, counters.messages - counters.extra);
  // Streams that have no message are open, or have ended. The latter only grow in number; that none
  // of the messages is an extra one makes them the fewest.
  history->ended_unfinished =
      std::max(history->ended_unfinished, counters.started - counters.messages - open);
  const auto without = [&](int64_t messages) {
    return std::clamp<int64_t>(counters.started - messages - history->ended_unfinished, 0,
                               std::max<int64_t>(0, open));
  };
  const Unfinished unfinished = {.least = without(counters.messages),
                                 .most = without(with_message)};
  if (counters.started != history->started || counters.messages != history->messages ||
      open != history->open) {
    history->changed_at = now;
  }
  if (with_message > history->with_message || unfinished.most == 0) history->progressed_at = now;
  if (counters.messages != history->messages || unfinished.least == 0) history->certain_at = now;
  history->started = counters.started;
  history->messages = counters.messages;
  history->with_message = std::max(history->with_message, with_message);
  history->open = open;
  history->judged_at = now;
  return unfinished;
}

std::vector<ClosedConnection> ConnectionPolicy::Judge(
    absl::Span<const ConnectionCounters> connections, const Shortage& shortage,
    absl::Duration now) {
  struct Stalled {
    absl::Duration since;
    int64_t unfinished;
    std::string peer;
  };
  std::vector<ClosedConnection> closed;
  std::vector<Stalled> stalled;
  unfinished_ = 0;
  for (const ConnectionCounters& each : connections) {
    History& history =
        histories_
            .try_emplace(each.id,
                         History{.changed_at = now, .progressed_at = now, .certain_at = now})
            .first->second;
    const auto [least, unfinished] = Update(each, now, &history);
    // Twice: at one moment the messages of many calls may be on their way.
    const bool has_too_many = unfinished > kMaxUnfinished;
    if (has_too_many && history.had_too_many) {
      closed.push_back({each.peer, absl::StrCat(unfinished, " unfinished calls")});
    } else if (least > 0 && now - history.certain_at >= kMaxAge) {
      // Not `unfinished`: of the extra messages some may be ends of streams, and a client that has
      // asked for reflection may park a call for long.
      closed.push_back({each.peer, absl::StrCat("a call unfinished for ",
                                                absl::FormatDuration(now - history.certain_at))});
    } else if (shortage.descriptors && history.open == 0 &&
               now - history.changed_at >= (each.started == 0 ? kIdleWithoutCall : kIdle)) {
      closed.push_back({each.peer, "idle while others wait for a descriptor"});
    } else {
      unfinished_ += unfinished;
      if (unfinished > 0 && now - history.progressed_at >= kStalled)
        stalled.push_back({history.progressed_at, unfinished, each.peer});
    }
    history.had_too_many = has_too_many;
  }
  std::sort(stalled.begin(), stalled.end(),
            [](const Stalled& a, const Stalled& b) { return a.since < b.since; });
  for (const Stalled& each : stalled) {
    if (unfinished_ <= (shortage.memory ? few_unfinished_ : kMaxUnfinishedInAll)) break;
    closed.push_back({each.peer, "unfinished calls, of which there are too many in all"});
    unfinished_ -= each.unfinished;
  }
  // Those that were not there this time are gone.
  std::erase_if(histories_, [now](const auto& entry) { return entry.second.judged_at != now; });
  return closed;
}

}  // namespace lockstep::rpc
