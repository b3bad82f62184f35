#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>

#include "absl/synchronization/notification.h"
#include "common/shm/handover_client.h"
#include "common/shm/handover_server.h"
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

std::unique_ptr<HandoverServer> Server(absl::Duration patience = kPatience) {
  auto server = HandoverServer::Start(patience);
  REQUIRE(server.ok());
  return *std::move(server);
}

// What a server was brought.
struct Brought {
  std::atomic<int> times = 0;
  std::shared_ptr<const Segment> segment;

  HandoverServer::Taken taken() {
    return [this](std::shared_ptr<const Segment> theirs) {
      segment = std::move(theirs);
      ++times;
      return absl::OkStatus();
    };
  }
};

// Connected, and silent.
FileDescriptor Visitor(const HandoverServer& server) {
  FileDescriptor visitor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, server.socket().data(), server.socket().size());
  const auto size = offsetof(sockaddr_un, sun_path) + 1 + server.socket().size();
  REQUIRE(connect(visitor.get(), reinterpret_cast<sockaddr*>(&address),
                  static_cast<socklen_t>(size)) == 0);
  return visitor;
}

TEST_CASE("Two sides exchange their memory for a secret that counts once") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  REQUIRE(secret.ok());
  const auto mine = SegmentWith('w');
  const auto theirs = ExchangeMemory(server->socket(), *secret, mine.get(), kPatience);
  REQUIRE(theirs.ok());
  CHECK(FirstOf(*theirs) == 'p');
  REQUIRE(brought.times == 1);
  CHECK(FirstOf(brought.segment) == 'w');
  const auto again = ExchangeMemory(server->socket(), *secret, mine.get(), kPatience);
  CHECK(absl::IsPermissionDenied(again.status()));
  CHECK(brought.times == 1);
}

TEST_CASE("Either side may come with nothing") {
  const auto server = Server();
  Brought brought;
  const auto first = server->Offer(nullptr, brought.taken());
  const auto nothing = ExchangeMemory(server->socket(), *first, SegmentWith('w').get(), kPatience);
  REQUIRE(nothing.ok());
  CHECK(*nothing == nullptr);
  const auto second = server->Offer(SegmentWith('p'), brought.taken());
  const auto theirs = ExchangeMemory(server->socket(), *second, nullptr, kPatience);
  REQUIRE(theirs.ok());
  CHECK(FirstOf(*theirs) == 'p');
  CHECK(brought.times == 2);
  CHECK(brought.segment == nullptr);
}

TEST_CASE("A wrong secret gets nothing, and takes the right one from nobody") {
  const auto server = Server();
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  const auto refused = ExchangeMemory(server->socket(), *secret + 1, nullptr, kPatience);
  CHECK(absl::IsPermissionDenied(refused.status()));
  CHECK(brought.times == 0);
  CHECK(ExchangeMemory(server->socket(), *secret, nullptr, kPatience).ok());
}

TEST_CASE("Who takes the memory may refuse it, and the peer is told why") {
  const auto server = Server();
  const auto secret = server->Offer(
      SegmentWith('p'), [](auto) { return absl::FailedPreconditionError("not in this job"); });
  const auto refused = ExchangeMemory(server->socket(), *secret, nullptr, kPatience);
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
  CHECK(ExchangeMemory(server->socket(), *secret, nullptr, kPatience).ok());
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

TEST_CASE("An offer that nobody took expires") {
  const auto server = Server(absl::ZeroDuration());
  Brought brought;
  const auto secret = server->Offer(SegmentWith('p'), brought.taken());
  const auto late = ExchangeMemory(server->socket(), *secret, nullptr, kPatience);
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
  iovec part{const_cast<uint64_t*>(&*secret), sizeof *secret};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
  REQUIRE(sendmsg(visitor.get(), &message, 0) == sizeof *secret);
  char answer[256];
  REQUIRE(recv(visitor.get(), answer, sizeof answer, 0) > 0);
  CHECK(answer[0] == '-');
  CHECK(brought.times == 0);
}

TEST_CASE("Where there is no socket there is no exchange") {
  std::string name;
  {
    const auto server = Server();
    name = server->socket();
  }
  CHECK(absl::IsUnavailable(ExchangeMemory(name, 1, nullptr, kPatience).status()));
}

TEST_CASE("A server that has gone silent is given up") {
  absl::Notification given_up;
  const auto server = Server();
  const auto secret = server->Offer(nullptr, [&given_up](auto) {
    given_up.WaitForNotification();
    return absl::OkStatus();
  });
  const auto late = ExchangeMemory(server->socket(), *secret, nullptr, absl::ZeroDuration());
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
    return ExchangeMemory(server->socket(), *secret, mine.get(), kPatience).ok() ? 'y' : 'n';
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
