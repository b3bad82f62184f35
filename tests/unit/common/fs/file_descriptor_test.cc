#include "common/fs/file_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <thread>

namespace lockstep {
namespace {

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span<const char>(text));
}

void DoNothing(int) {}

TEST_CASE("bytes are written whole though signals cut the writes short") {
  struct sigaction interrupt = {};
  interrupt.sa_handler = DoNothing;  // without SA_RESTART: a blocked write ends
  struct sigaction before = {};
  REQUIRE(sigaction(SIGUSR1, &interrupt, &before) == 0);
  std::array<int, 2> ends = {};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const FileDescriptor from(ends[0]);
  const FileDescriptor to(ends[1]);
  std::string sent(1'000'000, '\0');  // far more than a pipe holds
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 31 % 251);

  int error_number = -1;
  std::thread writer([&] { error_number = to.Write(BytesOf(sent)); });
  std::string received;
  std::array<char, 4096> buffer;
  while (received.size() < sent.size()) {
    pthread_kill(writer.native_handle(), SIGUSR1);
    const ssize_t got = read(from.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    received.append(buffer.data(), static_cast<size_t>(got));
  }
  writer.join();
  sigaction(SIGUSR1, &before, nullptr);
  CHECK(error_number == 0);
  CHECK((received == sent));
}

TEST_CASE("a failed write tells its error number") {
  const FileDescriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full.valid());
  CHECK(full.Write(BytesOf("x")) == ENOSPC);
  CHECK(full.Write({}) == 0);
  CHECK(FileDescriptor().Write(BytesOf("x")) == EBADF);
}

}  // namespace
}  // namespace lockstep
