// Calls whose replies nobody reads: HTTP/2 with windows of 0 bytes, written by hand.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/fs/file_descriptor.h"
#include "proto/ps.pb.h"

namespace lockstep::test {

// A connection to a ps, without TLS. Its server ends it when it misses an answer to its pings,
// after 15 s at most. As tests of Catch: from the test's thread.
class UnreadCalls {
 public:
  explicit UnreadCalls(const std::string& address);

  // Does not wait for the answer.
  void Pull(const PullRequest& request);

  struct Answers {
    int values = 0;  // the reply's headers have come; its message waits in the ps
    int refused = 0;
  };
  // Of all calls so far. Waits until each is answered.
  Answers WaitForAnswers();

 private:
  void Send(absl::string_view bytes);
  std::string Receive(size_t size);

  FileDescriptor connection_;
  const std::string headers_;  // of each call
  int calls_ = 0;
  Answers answers_;
};

}  // namespace lockstep::test
