// Calls the chief that commands, whichever of several that is. The others say that they stand by,
// or do not answer: then the next one is asked at once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/client/chief_client.h"

namespace lockstep::worker {

class FailoverChiefClient final : public ChiefClient {
 public:
  using Connect = std::function<std::unique_ptr<ChiefClient>(const std::string& address)>;

  // `addresses`: one or more, by index; the first one is asked first. `on_found` gets the address
  // when another chief answers than before; on a thread of a client. It may be null.
  FailoverChiefClient(Connect connect, std::vector<std::string> addresses,
                      std::function<void(const std::string& address)> on_found);
  ~FailoverChiefClient() override;

  // The one that answered last, for people: "chief 1 (host:port)"; where there is one alone, "the
  // chief (host:port)".
  std::string last_chief() const;
  // As many as before. Calls of chiefs that have moved go to their new addresses from now on; those
  // under way end as they would have.
  void SetAddresses(const std::vector<std::string>& addresses);

  // Asks each chief once at most, beginning with the one that answered last; what one of them
  // answers, a refusal included, is the answer. UNAVAILABLE: none commands, with what each said.
  void Start(const MethodInfo& method, const google::protobuf::MessageLite& request,
             google::protobuf::MessageLite* reply, StatusCallback done) override;

 private:
  struct Attempt;
  struct Connection {
    std::unique_ptr<ChiefClient> client;
    int calls = 0;  // whose callbacks have not returned; guarded by mutex_
  };
  struct Chief {
    std::string address;
    std::unique_ptr<Connection> connection;
  };

  // The chief to ask, which stays until EndAsking, and until EndCall; null while this is being
  // destroyed.
  Connection* BeginAsking(size_t chief);
  void EndAsking();
  // The last that a call's callback does.
  void EndCall(Connection* connection);
  // Of chiefs that have moved, those that no call uses any more. They are destroyed without the
  // lock, and never in a callback of theirs.
  std::vector<std::unique_ptr<Connection>> TakeUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAskingNobody() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return asking_ == 0; }
  void Ask(std::shared_ptr<Attempt> attempt);
  void OnAnswer(std::shared_ptr<Attempt> attempt, absl::Status status);

  const Connect connect_;
  const size_t num_chiefs_;
  const std::function<void(const std::string& address)> on_found_;
  mutable absl::Mutex mutex_;
  size_t last_ ABSL_GUARDED_BY(mutex_) = 0;  // that answered
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  int asking_ ABSL_GUARDED_BY(mutex_) = 0;
  // Last: their callbacks use all above.
  std::vector<Chief> chiefs_ ABSL_GUARDED_BY(mutex_);
  // Of chiefs that have moved. The next call or move destroys those without calls: it may be a
  // callback of theirs that tells of the move.
  std::vector<std::unique_ptr<Connection>> left_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
