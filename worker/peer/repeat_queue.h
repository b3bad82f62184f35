// RepeatQueue keeps the messages that members of a group did not take until they are sent again.
// Pure.
#pragma once

#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/retry_policy.h"

namespace lockstep::worker {

// The pauses of a member double from 20 ms to 1 s until it takes a message. Without the doubling, a
// member that has not joined the view yet would get its whole payload 50 times a second.
// Thread-compatible. Times are of one monotonic clock.
template <typename Message>
class RepeatQueue {
 public:
  explicit RepeatQueue(int members) : members_(members) {}

  // The member at `position` has not taken this message. Returns the delay until the call of Take.
  absl::Duration Add(int position, Message message, absl::Duration now) {
    Member& member = members_[position];
    member.messages.push_back(std::move(message));
    // Messages that were in flight together wait for the end of the same pause.
    member.pauses.OnRefusal(now);
    return member.pauses.not_before() - now;
  }
  // Removes and returns the messages for this member.
  std::vector<Message> Take(int position) { return std::exchange(members_[position].messages, {}); }
  // The member has taken a message. Removes and returns the others for it, to be sent now.
  std::vector<Message> OnAnswered(int position) {
    members_[position].pauses.OnSuccess();
    return Take(position);
  }
  // Removes and returns the messages for all members.
  std::vector<Message> TakeAll() {
    std::vector<Message> all;
    for (Member& member : members_) {
      for (Message& message : std::exchange(member.messages, {})) all.push_back(std::move(message));
    }
    return all;
  }

 private:
  struct Member {
    std::vector<Message> messages;
    RetryPolicy pauses{CallKind::kPlain};
  };

  std::vector<Member> members_;  // by position
};

}  // namespace lockstep::worker
