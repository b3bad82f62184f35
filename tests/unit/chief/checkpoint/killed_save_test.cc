// Processes that are killed while they save: at each operation, and at any moment.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/fs/file_descriptor.h"
#include "common/fs/folder.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/checkpoint/saving_job.h"

namespace lockstep::chief {
namespace {

using test::SetDiskFaults;
using test::TemporaryFolder;

constexpr int kKeepLast = 2;
constexpr absl::Duration kLongestLife = absl::Milliseconds(30);

// A process that runs `work`, which gets where to tell of steps that are saved.
class Child {
 public:
  using Work = absl::FunctionRef<void(const FileDescriptor& acknowledge)>;

  explicit Child(Work work) {
    std::array<int, 2> ends = {};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    acknowledged_ = FileDescriptor(ends[0]);
    FileDescriptor acknowledge(ends[1]);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    work(acknowledge);
    ::_exit(0);
  }
  ~Child() { Kill(); }

  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    WaitForEnd();
  }

  // Whether it was killed.
  bool WaitForEnd() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFSIGNALED(status);
  }

  // The last step that it tells of before `deadline` and before its end; 0: none.
  int64_t LastAcknowledged(absl::Time deadline = absl::InfiniteFuture()) {
    int64_t last = 0;
    while (true) {
      pollfd readable = {acknowledged_.get(), POLLIN, 0};
      const absl::Duration left = deadline - absl::Now();
      const timespec limit = absl::ToTimespec(std::max(left, absl::ZeroDuration()));
      const bool is_limited = deadline < absl::InfiniteFuture();
      if (::ppoll(&readable, 1, is_limited ? &limit : nullptr, nullptr) <= 0) return last;
      if (::read(acknowledged_.get(), &last, sizeof last) != sizeof last) return last;
    }
  }

 private:
  FileDescriptor acknowledged_;
  pid_t pid_ = 0;
};

void Tell(const FileDescriptor& to, int64_t step) {
  (void)to.Write(std::as_bytes(std::span(&step, 1)));
}

// What a restart does after the process before it was killed: finds the newest checkpoint, takes
// the folder over and saves.
void GoOn(const TemporaryFolder& root, uint64_t term, int64_t step) {
  SetDiskFaults(test::NoSyncsBelow(root.path()));
  SavingJob job(root.path(), term, kKeepLast);
  REQUIRE(job.Take().ok());
  const absl::StatusOr<std::string> saved = job.Save(step);
  INFO(saved.status());
  REQUIRE(saved.ok());
  CHECK(job.warnings().empty());
  CHECK(*NewestSound(root.path()) == step);
}

TEST_CASE("a process that is killed at any operation of a save leaves the newest that it told of") {
  struct Row {
    const char* operation;
    const char* action;
    int at_least;
  };
  for (const Row& row : {Row{"any", "kill_before", 100}, Row{"any", "kill_after", 100},
                         Row{"write", "kill_half", 5}}) {
    const TemporaryFolder root(TemporaryFolder::kInMemory);
    uint64_t term = 1;
    int64_t step = 1;
    GoOn(root, term, step);
    int operations = 0;
    bool was_killed = true;
    while (was_killed) {
      ++operations;
      ++term;
      CAPTURE(row.operation, row.action, operations);
      Child child([&](const FileDescriptor& acknowledge) {
        SetDiskFaults(
            absl::StrCat(root.path(), ",", row.operation, ",,", operations, ",", row.action));
        SavingJob job(root.path(), term, kKeepLast);
        if (job.Take().ok() && job.Save(step + 1).ok()) Tell(acknowledge, step + 1);
      });
      const int64_t acknowledged = child.LastAcknowledged();
      was_killed = child.WaitForEnd();
      const absl::StatusOr<int64_t> newest = NewestSound(root.path());
      INFO(newest.status());
      REQUIRE(newest.ok());
      CHECK(*newest >= std::max(step, acknowledged));
      CHECK((was_killed || acknowledged == step + 1));
      step += 2;
      GoOn(root, ++term, step);
      // What the killed one has left goes: two checkpoints are kept.
      CHECK(ListFolder(root.path())->size() == 3 + kKeepLast);
    }
    CHECK(operations > row.at_least);
  }
}

void KillAtAnyMoment(int kills) {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  std::minstd_rand random(1);
  uint64_t term = 1;
  int64_t newest = 1;
  GoOn(root, term, newest);
  int64_t saves = 0, unfinished = 0;
  for (int i = 0; i < kills; ++i) {
    ++term;
    Child child([&](const FileDescriptor& acknowledge) {
      // So that a kill is as likely anywhere else.
      SetDiskFaults(test::NoSyncsBelow(root.path()));
      SavingJob job(root.path(), term, kKeepLast);
      if (!job.Take().ok()) return;
      for (int64_t step = newest + 1; job.Save(step).ok(); ++step) Tell(acknowledge, step);
    });
    const absl::Duration life = kLongestLife * (static_cast<double>(random()) / random.max());
    const int64_t in_time = child.LastAcknowledged(absl::Now() + life);
    child.Kill();
    const int64_t acknowledged = std::max({newest, in_time, child.LastAcknowledged()});
    CAPTURE(i, acknowledged);
    const absl::StatusOr<int64_t> found = NewestSound(root.path());
    INFO(found.status());
    REQUIRE(found.ok());
    REQUIRE(*found >= acknowledged);
    REQUIRE(*found <= acknowledged + 1);
    saves += *found - newest;
    unfinished += ListFolder(root.path())->size() > 3 + kKeepLast;
    newest = *found;
  }
  WARN(kills << " kills, " << saves << " checkpoints, " << unfinished << " saves cut short");
  CHECK(unfinished > kills / 10);
  GoOn(root, ++term, newest + 1);
}

TEST_CASE("a process that is killed at any moment leaves the newest that it told of") {
  KillAtAnyMoment(100);
}

TEST_CASE("500 kills at any moment lose no checkpoint that was told of", "[.kills]") {
  KillAtAnyMoment(500);
}

}  // namespace
}  // namespace lockstep::chief
