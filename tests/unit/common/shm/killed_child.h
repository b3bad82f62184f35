// A process that does something and is killed.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>

namespace lockstep::shm::test {

// What `work` returned in a child, which was then killed and is gone.
inline char KilledAfter(const std::function<char()>& work) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const char result = work();
    (void)!write(ends[1], &result, 1);
    while (true) pause();
  }
  char result;
  REQUIRE(read(ends[0], &result, 1) == 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ends[0]);
  close(ends[1]);
  return result;
}

}  // namespace lockstep::shm::test
