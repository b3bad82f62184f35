#include "tests/chaos/stranger_faults.h"

#include <sys/socket.h>

#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "common/fs/file_descriptor.h"
#include "common/rpc/credentials.h"
#include "tests/chaos/job_credentials.h"
#include "tests/chaos/stranger_connections.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::test {
namespace {

constexpr int kIdle = 300;
constexpr int kGarbage = 64;
constexpr int kRandomBytes = 512;
constexpr int kCalls = 8;
constexpr absl::Duration kAnswer = absl::Milliseconds(100);
constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
// Of SETTINGS: no payload. The header of another one says 6 bytes.
constexpr absl::string_view kSettings("\0\0\0\4\0\0\0\0\0", 9);
constexpr absl::string_view kCutSettings("\0\0\6\4\0\0\0\0\0\0\3", 11);

class HeldConnections : public OngoingFault {
 public:
  // `wanted`: how many there were to be.
  HeldConnections(std::vector<FileDescriptor> connections, int wanted)
      : connections_(std::move(connections)), num_made_(connections_.size()), wanted_(wanted) {}
  void Heal() override { connections_.clear(); }
  std::string defect() const override {
    if (num_made_ == static_cast<size_t>(wanted_)) return "";
    return absl::StrCat("the task took ", num_made_, " of ", wanted_, " connections");
  }

 private:
  std::vector<FileDescriptor> connections_;
  const size_t num_made_;
  const int wanted_;
};

std::string RandomBytes(std::mt19937_64* random) {
  std::string bytes(kRandomBytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>((*random)());
  return bytes;
}

std::string GarbageOf(int connection, std::mt19937_64* random) {
  switch (connection % 4) {
    case 0:
      return RandomBytes(random);
    case 1:
      return std::string(kPreface.substr(0, 1 + (*random)() % (kPreface.size() - 1)));
    case 2:
      return absl::StrCat(kPreface, kCutSettings);
    default:
      return absl::StrCat(kPreface, kSettings, RandomBytes(random));
  }
}

class WrongToken : public OngoingFault {
 public:
  explicit WrongToken(const std::string& address)
      : address_(address), credentials_(NewToken(folder_.Path("token"))) {}
  bool Advance(int /*num_advances*/) override {
    if (calls_ == kCalls) return true;
    const bool has_token = calls_++ % 2 != 0;
    if (FetchStatus(address_, kAnswer, has_token ? credentials_.get() : nullptr).ok()) {
      defect_ = has_token ? "a call with another job's token was answered"
                          : "a call without a token was answered";
    }
    return false;
  }
  std::string defect() const override { return defect_; }

 private:
  const std::string address_;
  const TemporaryFolder folder_;
  const std::shared_ptr<const rpc::Credentials> credentials_;
  int calls_ = 0;
  std::string defect_;
};

}  // namespace

std::unique_ptr<OngoingFault> HoldIdleConnections(const std::string& address) {
  return std::make_unique<HeldConnections>(ConnectTo(address, kIdle), kIdle);
}

std::unique_ptr<OngoingFault> SendGarbage(const std::string& address) {
  std::mt19937_64 random(kGarbage);  // the same bytes again
  std::vector<FileDescriptor> connections = ConnectTo(address, kGarbage);
  for (size_t i = 0; i < connections.size(); ++i) {
    SendTo(connections[i], GarbageOf(static_cast<int>(i), &random));
    if (i / 4 % 2 == 0) shutdown(connections[i].get(), SHUT_WR);
  }
  return std::make_unique<HeldConnections>(std::move(connections), kGarbage);
}

std::unique_ptr<OngoingFault> CallWithWrongToken(const std::string& address) {
  return std::make_unique<WrongToken>(address);
}

}  // namespace lockstep::test
