#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"
#include "common/shm/fd_passing_client.h"
#include "common/shm/fd_passing_server.h"
#include "tests/unit/common/shm/killed_child.h"

namespace lockstep::shm {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(30);

std::shared_ptr<Segment> SegmentWith(char first, uint64_t bytes = 4096) {
  auto segment = Segment::Create("test", bytes);
  REQUIRE(segment.ok());
  (*segment)->bytes()[0] = static_cast<std::byte>(first);
  return *segment;
}

char FirstOf(const std::shared_ptr<const Segment>& segment) {
  return static_cast<char>(segment->bytes()[0]);
}

std::unique_ptr<FdPassingServer> Server(absl::Duration patience = kPatience,
                                        const Clock* clock = Clock::Real()) {
  auto server = FdPassingServer::Start(patience, clock);
  REQUIRE(server.ok());
  return *std::move(server);
}

// What a server was brought.
struct Brought {
  std::atomic<int> times = 0;
  std::shared_ptr<const Segment> segment;

  FdPassingServer::OnTaken taken() {
    return [this](std::shared_ptr<const Segment> theirs) {
      segment = std::move(theirs);
      ++times;
      return absl::OkStatus();
    };
  }
};

FileDescriptor UnconnectedVisitor() {
  return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
}

void Connect(const FileDescriptor& visitor, const FdPassingServer& server) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, server.socket().data(), server.socket().size());
  const auto size = offsetof(sockaddr_un, sun_path) + 1 + server.socket().size();
  REQUIRE(connect(visitor.get(), reinterpret_cast<sockaddr*>(&address),
                  static_cast<socklen_t>(size)) == 0);
}

// Connected, and silent.
FileDescriptor Visitor(const FdPassingServer& server) {
  FileDescriptor visitor = UnconnectedVisitor();
  Connect(visitor, server);
  return visitor;
}

// A packet with the secret and these descriptors.
void SendWith(const FileDescriptor& visitor, uint64_t secret, const std::vector<int>& descriptors) {
  iovec part{&secret, sizeof secret};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  const size_t bytes = descriptors.size() * sizeof(int);
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
  REQUIRE(sendmsg(visitor.get(), &message, 0) == sizeof secret);
}

// The server's answer; returns when the server has closed its end.
std::string AnswerTo(const FileDescriptor& visitor) {
  char answer[256];
  const ssize_t size = recv(visitor.get(), answer, sizeof answer, 0);
  REQUIRE(size > 0);
  CHECK(recv(visitor.get(), answer + size, sizeof answer - size, 0) == 0);
  return std::string(answer, static_cast<size_t>(size));
}

std::ptrdiff_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

int LowestFreeDescriptor() { return FileDescriptor(dup(STDIN_FILENO)).get(); }

// The time of day is what a test says; the monotonic one stands still until told.
class SetClock final : public Clock {
 public:
  absl::Duration Monotonic() const override { return absl::Seconds(seconds.load()); }
  absl::Time Wall() const override { return absl::FromUnixSeconds(wall_seconds.load()); }

  std::atomic<int64_t> seconds = 1000;
  std::atomic<int64_t> wall_seconds = 1'700'000'000;
};

TEST_CASE("Two sides exchange their memory for a secret that counts once") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  REQUIRE(secret.ok());
  const auto mine = SegmentWith('w');
  const auto theirs = ShareMemory(server->socket(), *secret, mine.get(), kPatience);
  REQUIRE(theirs.ok());
  CHECK(FirstOf(*theirs) == 'p');
  REQUIRE(brought.times == 1);
  CHECK(FirstOf(brought.segment) == 'w');
  const auto again = ShareMemory(server->socket(), *secret, mine.get(), kPatience);
  CHECK(absl::IsPermissionDenied(again.status()));
  CHECK(brought.times == 1);
}

TEST_CASE("Either side may come with nothing") {
  const auto server = Server();
  Brought brought;
  const auto first = server->Offer(nullptr, brought.taken());
  const auto nothing = ShareMemory(server->socket(), *first, SegmentWith('w').get(), kPatience);
  REQUIRE(nothing.ok());
  CHECK(*nothing == nullptr);
  const auto second = server->Offer(SegmentWith('p'), brought.taken());
  const auto theirs = ShareMemory(server->socket(), *second, nullptr, kPatience);
  REQUIRE(theirs.ok());
  CHECK(FirstOf(*theirs) == 'p');
  CHECK(brought.times == 2);
  CHECK(brought.segment == nullptr);
}

TEST_CASE("A wrong secret gets nothing, and takes the right one from nobody") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  const auto refused = ShareMemory(server->socket(), *secret + 1, nullptr, kPatience);
  CHECK(absl::IsPermissionDenied(refused.status()));
  CHECK(brought.times == 0);
  CHECK(ShareMemory(server->socket(), *secret, nullptr, kPatience).ok());
}

TEST_CASE("Who takes the memory may refuse it, and the peer is told why") {
  const auto server = Server();
  const auto secret = server->Offer(
      SegmentWith('p'), [](auto) { return absl::FailedPreconditionError("not in this job"); });
  const auto refused = ShareMemory(server->socket(), *secret, nullptr, kPatience);
  CHECK(std::string(refused.status().message()).find("not in this job") != std::string::npos);
}

TEST_CASE("Silent peers, peers that hang up and peers that babble keep nobody waiting") {
  const auto server = Server();
  const FileDescriptor silent = Visitor(*server), also_silent = Visitor(*server);
  { const FileDescriptor hangs_up = Visitor(*server); }
  const FileDescriptor babbles = Visitor(*server);
  REQUIRE(send(babbles.get(), "0123456789abcdef", 16, 0) == 16);
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  CHECK(ShareMemory(server->socket(), *secret, nullptr, kPatience).ok());
  char answer[64];
  const ssize_t size = recv(babbles.get(), answer, sizeof answer, 0);
  REQUIRE(size > 0);
  CHECK(answer[0] == '-');
}

TEST_CASE("A peer that says nothing is dropped") {
  const auto server = Server(absl::Milliseconds(1));
  const FileDescriptor silent = Visitor(*server);
  char byte;
  CHECK(recv(silent.get(), &byte, 1, 0) == 0);  // blocks until the server hangs up
}

TEST_CASE("Of more peers than 256 the next one is heard when one of them has gone") {
  const auto server = Server();
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 256; ++i) silent.push_back(Visitor(*server));
  const FileDescriptor next = Visitor(*server);
  REQUIRE(send(next.get(), "0123456789abcdef", 16, 0) == 16);
  pollfd answer = {next.get(), POLLIN, 0};
  CHECK(poll(&answer, 1, 200) == 0);  // milliseconds
  silent.erase(silent.begin());
  CHECK(AnswerTo(next).substr(0, 1) == "-");
}

TEST_CASE("A packet of more than 1 KiB is refused, and its secret still counts") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  std::string packet(1025, 0);
  std::memcpy(packet.data(), &*secret, sizeof *secret);
  const FileDescriptor visitor = Visitor(*server);
  REQUIRE(send(visitor.get(), packet.data(), packet.size(), 0) == 1025);
  CHECK_THAT(AnswerTo(visitor), Catch::Contains("expected a packet of at most 1024 bytes"));
  CHECK(brought.times == 0);
  CHECK(ShareMemory(server->socket(), *secret, nullptr, kPatience).ok());
}

TEST_CASE("An offer that nobody took expires") {
  const auto server = Server(absl::ZeroDuration());
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  const auto late = ShareMemory(server->socket(), *secret, nullptr, kPatience);
  CHECK_FALSE(late.ok());
  CHECK(brought.times == 0);
}

TEST_CASE("What is no segment is refused, and the offer with it") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  const FileDescriptor visitor = Visitor(*server);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const FileDescriptor read_end(ends[0]), write_end(ends[1]);
  SendWith(visitor, *secret, {ends[0]});
  char answer[256];
  REQUIRE(recv(visitor.get(), answer, sizeof answer, 0) > 0);
  CHECK(answer[0] == '-');
  CHECK(brought.times == 0);
}

TEST_CASE("A packet with several descriptors is refused, and none of them stays open") {
  const auto server = Server();
  Brought brought;
  const std::ptrdiff_t before = OpenDescriptors();
  for (const size_t number : {2, 2, 2, 3, 8}) {
    const auto secret = server->Offer(SegmentWith('p'), brought.taken());
    REQUIRE(secret.ok());
    const FileDescriptor visitor = Visitor(*server);
    SendWith(visitor, *secret, std::vector<int>(number, visitor.get()));
    CHECK_THAT(AnswerTo(visitor), Catch::StartsWith("-") && Catch::Contains("one descriptor"));
    // The offer still holds: the packet was not looked at.
    CHECK(ShareMemory(server->socket(), *secret, nullptr, kPatience).ok());
  }
  // The server closes its end of a connection when it sees that the other end is closed.
  const absl::Duration end = Clock::Real()->Monotonic() + kPatience;
  while (OpenDescriptors() != before && Clock::Real()->Monotonic() < end) std::this_thread::yield();
  CHECK(OpenDescriptors() == before);
  CHECK(brought.times == 5);
}

TEST_CASE("A time of day that is set changes nothing for offers and peers") {
  SetClock clock;
  const auto server = Server(absl::Seconds(30), &clock);
  for (const int64_t hours : {-1, 1}) {
    Brought brought;
    const auto secret = server->Offer(SegmentWith('p'), brought.taken());
    const FileDescriptor silent = Visitor(*server);
    clock.wall_seconds += hours * 3600;
    CHECK(ShareMemory(server->socket(), *secret, nullptr, kPatience).ok());
    // The peer that came before is still heard.
    REQUIRE(send(silent.get(), "0123456789abcdef", 16, 0) == 16);
    CHECK_THAT(AnswerTo(silent), Catch::StartsWith("-"));
  }
}

TEST_CASE("An offer expires after ten times the patience, by the monotonic time") {
  SetClock clock;
  const auto server = Server(absl::Seconds(30), &clock);
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  clock.seconds += 301;
  const auto late = ShareMemory(server->socket(), *secret, nullptr, kPatience);
  CHECK(absl::IsPermissionDenied(late.status()));
  CHECK(brought.times == 0);
}

TEST_CASE("Where there is no socket there is no exchange") {
  std::string name;
  {
    const auto server = Server();
    name = server->socket();
  }
  CHECK(absl::IsUnavailable(ShareMemory(name, 1, nullptr, kPatience).status()));
}

TEST_CASE("A peer that comes while there are no descriptors is answered when there are some") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  REQUIRE(secret.ok());
  const FileDescriptor visitor = UnconnectedVisitor();
  rlimit before = {};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none = {static_cast<rlim_t>(LowestFreeDescriptor()), before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  Connect(visitor, *server);
  REQUIRE(send(visitor.get(), &*secret, sizeof *secret, 0) == sizeof *secret);
  pollfd answer = {visitor.get(), POLLIN, 0};
  const bool is_early = poll(&answer, 1, 20) != 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK_FALSE(is_early);
  CHECK_THAT(AnswerTo(visitor), Catch::StartsWith("+"));
  CHECK(brought.times == 1);
}

TEST_CASE("A server that has gone silent is given up") {
  absl::Notification given_up;
  const auto server = Server();
  const auto secret = server->Offer(nullptr, [&given_up](auto) {
    given_up.WaitForNotification();
    return absl::OkStatus();
  });
  const auto late = ShareMemory(server->socket(), *secret, nullptr, absl::ZeroDuration());
  given_up.Notify();
  CHECK(absl::IsDeadlineExceeded(late.status()));
}

TEST_CASE("The memory of a killed peer stays for as long as it is mapped, and no longer") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(nullptr, brought.taken());
  std::shared_ptr<Segment> mine;  // the child has it until it is killed
  const char exchanged = test::KilledAfter([&] {
    mine = *Segment::Create("child", 4096);
    mine->bytes()[0] = std::byte{'c'};
    return ShareMemory(server->socket(), *secret, mine.get(), kPatience).ok() ? 'y' : 'n';
  });
  REQUIRE(exchanged == 'y');
  REQUIRE(brought.times == 1);
  CHECK(FirstOf(brought.segment) == 'c');
  const std::weak_ptr<const Segment> last = brought.segment;
  brought.segment.reset();
  CHECK(last.expired());
}

}  // namespace
}  // namespace lockstep::shm
