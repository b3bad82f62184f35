#include "common/rpc/connection_guard.h"

#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <netinet/in.h>
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
#include "common/base/clock.h"
#include "common/log/log.h"
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
// Four chunks of each of 64 workers are 256 MiB.
constexpr int64_t kShortOfMemory = 1 << 30;
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

// The bytes of address and port, IPv4 also where an IPv6 socket has taken it; empty for others.
std::string PeerOf(int connection) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return absl::StrCat(
        absl::string_view(reinterpret_cast<const char*>(&v4->sin_addr), sizeof v4->sin_addr), ":",
        ntohs(v4->sin_port));
  }
  if (storage.ss_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  absl::string_view address(reinterpret_cast<const char*>(&v6->sin6_addr), sizeof v6->sin6_addr);
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) address.remove_prefix(12);
  return absl::StrCat(address, ":", ntohs(v6->sin6_port));
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
  return absl::StrCat(bytes, ":", Number(address, "port"));
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
  const bool has_shut_down = PeerOf(copy) == peer && shutdown(copy, SHUT_RDWR) == 0;
  close(copy);
  return has_shut_down;
}

}  // namespace

void ConnectionGuard::Add(int connection) {
  if (peers_.size() <= static_cast<size_t>(connection)) peers_.resize(connection + 1);
  peers_[connection] = PeerOf(connection);
}

bool ConnectionGuard::IsTime(bool is_full, absl::Duration now) {
  if (now >= next_look_) return true;
  if (now < next_early_look_) return false;
  return is_full || ResidentBytes() > known_memory_ + kMemoryGrowth;
}

void ConnectionGuard::Look(bool is_full, absl::Duration now) {
  if (!IsTime(is_full, now)) return;
  // The heap keeps what is freed for the next messages; those of strangers do not come again.
  if (std::exchange(trim_, false)) TrimHeap();
  known_memory_ = ResidentBytes();
  const Shortage shortage = {.descriptors = is_full,
                             .memory = known_memory_ > calm_memory_ + kShortOfMemory};
  const std::vector<ClosedConnection> closed = policy_.Judge(ReadCounters(), shortage, now);
  if (closed.empty() && policy_.is_calm()) calm_memory_ = known_memory_;
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
