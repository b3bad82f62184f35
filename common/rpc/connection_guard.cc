#include "common/rpc/connection_guard.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/available_memory.h"
#include "common/base/clock.h"
#include "common/log/log.h"
#include "common/rpc/peer_name.h"
#include "common/rpc/process.h"

namespace lockstep::rpc {
namespace {

using Json = nlohmann::json;

constexpr absl::Duration kLookPeriod = absl::Seconds(5);
// Reading the counters of a connection takes some 50 us: at most 1 % of the time, or 10 % while
// memory grows.
constexpr int kCalmShare = 100;
constexpr int kEarlyShare = 10;
constexpr int64_t kMemoryGrowth = 32 << 20;
constexpr absl::Duration kCloseLogPeriod = absl::Seconds(10);
constexpr int kSocketsAtOnce = 500;

// 0 when it cannot be told.
int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0;
  int64_t resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// What gRPC answers to one of its channelz questions; takes ownership.
Json Parse(char* text) {
  if (text == nullptr) return Json::object();
  Json json = Json::parse(text, nullptr, false);
  gpr_free(text);
  return json.is_object() ? json : Json::object();
}

// The list or object there; an empty one when there is none.
const Json& Child(const Json& json, const char* name) {
  static const Json* const kNone = new Json;
  const auto found = json.find(name);
  return found == json.end() ? *kNone : *found;
}

// In JSON gRPC writes 64-bit numbers as strings, and leaves zeros out.
int64_t Number(const Json& json, const char* name) {
  const Json& value = Child(json, name);
  if (value.is_number_integer()) return value.get<int64_t>();
  int64_t number = 0;
  if (value.is_string()) (void)absl::SimpleAtoi(value.get_ref<const std::string&>(), &number);
  return number;
}

std::string PeerOf(const Json& socket) {
  const Json& address = Child(Child(socket, "remote"), "tcpip_address");
  const Json& ip = Child(address, "ip_address");
  std::string bytes;
  if (!ip.is_string() || !absl::Base64Unescape(ip.get_ref<const std::string&>(), &bytes)) return "";
  return PeerName(bytes, static_cast<int>(Number(address, "port")));
}

// Of every connection to a server of this process.
std::vector<ConnectionCounters> ReadCounters() {
  std::vector<ConnectionCounters> connections;
  const Json servers = Parse(grpc_channelz_get_servers(0));
  for (const Json& server : Child(servers, "server")) {
    const int64_t id = Number(Child(server, "ref"), "serverId");
    int64_t next = 0;
    for (bool end = false; !end;) {
      const Json sockets = Parse(grpc_channelz_get_server_sockets(id, next, kSocketsAtOnce));
      end = sockets.value("end", false) || Child(sockets, "socketRef").empty();
      for (const Json& ref : Child(sockets, "socketRef")) {
        const int64_t socket_id = Number(ref, "socketId");
        next = socket_id + 1;
        const Json answer = Parse(grpc_channelz_get_socket(socket_id));
        const Json& socket = Child(answer, "socket");
        const Json& data = Child(socket, "data");
        connections.push_back({.peer = PeerOf(socket),
                               .id = socket_id,
                               .started = Number(data, "streamsStarted"),
                               .succeeded = Number(data, "streamsSucceeded"),
                               .failed = Number(data, "streamsFailed"),
                               .messages = Number(data, "messagesReceived")});
      }
    }
  }
  return connections;
}

bool ShutDown(int connection, const std::string& peer) {
  // gRPC may have closed the descriptor, and its number may be another file's. A copy stays what it
  // is.
  const int copy = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return false;
  const bool has_shut_down = PeerName(copy) == peer && shutdown(copy, SHUT_RDWR) == 0;
  close(copy);
  return has_shut_down;
}

}  // namespace

void ConnectionGuard::Add(int connection) {
  if (peers_.size() <= static_cast<size_t>(connection)) peers_.resize(connection + 1);
  peers_[connection] = PeerName(connection);
}

std::vector<ConnectionCounters> ConnectionGuard::Read() {
  // Those of a connection that begins meanwhile are not among them.
  ExtraMessages::Counts ended = extra_->counts();
  std::vector<ConnectionCounters> connections = ReadCounters();
  // Afterwards: of the messages that were read, all extra ones are to be known.
  const ExtraMessages::Counts extra = extra_->counts();
  for (ConnectionCounters& each : connections) {
    const auto found = extra.find(each.peer);
    if (found != extra.end()) each.extra = found->second;
    ended.erase(each.peer);
  }
  extra_->Forget(ended);
  return connections;
}

bool ConnectionGuard::IsTime(bool is_full, absl::Duration now) {
  if (now >= next_look_) return true;
  if (now < next_early_look_) return false;
  return is_full || ResidentBytes() > known_memory_ + kMemoryGrowth;
}

void ConnectionGuard::CheckConnections(bool is_full, absl::Duration now) {
  if (!IsTime(is_full, now)) return;
  // The heap keeps what is freed for the next messages; those of strangers do not come again.
  if (std::exchange(trim_, false)) TrimHeap();
  known_memory_ = ResidentBytes();
  const Shortage shortage = {.descriptors = is_full,
                             .memory = known_memory_ > calm_memory_ + margin_.growth};
  const std::vector<ClosedConnection> closed = policy_.Judge(Read(), shortage, now);
  if (closed.empty() && policy_.is_calm()) {
    calm_memory_ = known_memory_;
    margin_ = MarginOf(AvailableMemory());
    policy_.SetFewUnfinished(margin_.unfinished_calls);
  }
  for (const ClosedConnection& each : closed) Close(each);
  trim_ = !closed.empty();
  LogClosed(now);
  const absl::Duration took = Clock::Real()->Monotonic() - now;
  next_look_ = now + std::max(trim_ ? kPeriod : kLookPeriod, took * kCalmShare);
  next_early_look_ = now + took * kEarlyShare;
}

void ConnectionGuard::LogClosed(absl::Duration now) {
  if (unlogged_ == 0 || now < next_log_) return;
  log::Warning(absl::StrCat("closed ", unlogged_, " connections, the last one for ", last_reason_));
  unlogged_ = 0;
  next_log_ = now + kCloseLogPeriod;
}

void ConnectionGuard::Close(const ClosedConnection& closed) {
  if (closed.peer.empty()) return;
  // A connection that has ended may have had the same port, so each descriptor is looked at.
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i] == closed.peer && ShutDown(static_cast<int>(i), closed.peer)) {
      ++unlogged_;
      last_reason_ = closed.reason;
      peers_[i].clear();  // gRPC lists it until its calls have ended
    }
  }
}

}  // namespace lockstep::rpc
