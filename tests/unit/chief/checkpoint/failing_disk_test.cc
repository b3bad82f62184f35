// Saves and restores on a disk of which one operation fails, each in its turn.
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/checkpoint/folder.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/chief/checkpoint/saving_job.h"

namespace lockstep::chief {
namespace {

using test::FailedDiskOperations;
using test::SetDiskFaults;
using test::TemporaryFolder;

struct Error {
  const char* name;
  int number;
};

// The last two are of network storage: abseil has codes for them that would end a job, or count as
// a save.
constexpr Error kWriteErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EDQUOT", EDQUOT},
                                  {"EROFS", EROFS},   {"EACCES", EACCES}, {"ESTALE", ESTALE},
                                  {"EEXIST", EEXIST}};

// From now on nothing fails.
void Repair(const TemporaryFolder& root) { SetDiskFaults(test::NoSyncsBelow(root.path())); }

std::string TextOf(int error) { return std::system_category().message(error); }

// The nth operation below the folder, counted from 1.
std::string Fault(const TemporaryFolder& root, int nth, const std::string& action) {
  return absl::StrCat(root.path(), ",any,,", nth, ",", action);
}

// A failure of these need not be told, since nothing is lost by it: what is closed was read or has
// been synced, the lock is tried again with the next save, and a look at what is there that fails
// leaves more of it there.
bool MayBeSilent(const std::string& operation) {
  const std::vector<std::string> words = absl::StrSplit(operation, absl::MaxSplits(' ', 1));
  const std::string name = NameOf(words[1]);
  const bool is_look = words[0] == "open" || words[0] == "stat" || words[0] == "read";
  const bool is_looked_at =
      name == "LATEST" || name == "manifest.json" || absl::StartsWith(name, "ckpt-");
  return words[0] == "close" || name == "LOCK" || (is_look && is_looked_at);
}

// What a save on a failing disk has come to.
void CheckSaveThatFailed(const TemporaryFolder& root, const Error& error, const absl::Status& saved,
                         const std::vector<std::string>& warnings, const std::string& operation) {
  const std::string told = absl::StrCat(saved.message(), "\n", absl::StrJoin(warnings, "\n"));
  INFO(error.name << " of " << operation << ": " << saved << "\n" << told);
  const bool is_told =
      absl::StrContains(told, root.path()) && absl::StrContains(told, TextOf(error.number));
  // A mkdir that says EEXIST has met something else.
  const bool is_in_the_way = absl::StrContains(told, ": a file, expected a folder");
  CHECK((is_told || is_in_the_way || MayBeSilent(operation)));
  // Such a code would end the job, or count as a save.
  CHECK_FALSE(absl::IsAborted(saved));
  CHECK_FALSE(absl::IsAlreadyExists(saved));
}

TEST_CASE("whatever operation of a save fails, the checkpoint before counts and the next works") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/1);
  REQUIRE(job.Take().ok());
  int64_t step = 1;
  REQUIRE(job.Save(step).ok());
  int operations = 0;
  for (bool has_failed = true; has_failed; ++operations) {
    has_failed = false;
    int64_t newest = step;
    for (const Error& error : kWriteErrors) {
      SetDiskFaults(Fault(root, operations + 1, error.name));
      const absl::Status saved = job.Save(++step).status();
      const std::vector<std::string> failed = FailedDiskOperations();
      Repair(root);
      if (!failed.empty()) CheckSaveThatFailed(root, error, saved, job.warnings(), failed[0]);
      has_failed = has_failed || !failed.empty();
      const absl::StatusOr<int64_t> found = NewestSound(root.path());
      CAPTURE(operations, error.name, found.status(), saved);
      REQUIRE(found.ok());
      REQUIRE((*found == step || (*found == newest && !saved.ok())));
      // A save that fails leaves nothing, unless LATEST has got its name.
      const bool is_named = root.Read("LATEST") == CheckpointName(step) + "\n";
      CHECK((saved.ok() || is_named || *found == newest));
      CHECK(std::filesystem::exists(CheckpointFolder(root.path(), step)) == is_named);
      newest = *found;
    }
    REQUIRE(job.Save(++step).ok());
    CHECK(job.warnings().empty());
    CHECK(*NewestSound(root.path()) == step);
    CHECK(*ListFolder(root.path()) ==
          std::vector<std::string>{"LATEST", "LOCK", "OWNER.json", absl::StrCat("ckpt-", step)});
    CHECK(ListFolder(CheckpointFolder(root.path(), step))->size() == kNumShards + 1);
  }
  CHECK(operations > 100);
}

TEST_CASE("whatever operation of a save that is made again fails, its first checkpoint is whole") {
  for (const Error& error : {Error{"ENOSPC", ENOSPC}, Error{"EIO", EIO}}) {
    const TemporaryFolder root(TemporaryFolder::kInMemory);
    Repair(root);
    SavingJob job(root.path(), 1, /*keep_last=*/1);
    REQUIRE(job.Take().ok());
    REQUIRE(job.Save(5).ok());
    int operations = 0;
    while (true) {
      SetDiskFaults(Fault(root, operations + 1, error.name));
      const absl::StatusOr<std::string> saved = job.Save(5);
      const std::vector<std::string> failed = FailedDiskOperations();
      Repair(root);
      if (failed.empty()) break;
      ++operations;
      INFO(error.name << " of operation " << operations << ", " << failed[0] << ": "
                      << saved.status());
      const absl::StatusOr<int64_t> newest = NewestSound(root.path());
      INFO(newest.status());
      REQUIRE(newest.ok());
      CHECK(*newest == 5);
    }
    CHECK(operations > 50);
    REQUIRE(job.Save(5).ok());
    CHECK(ListFolder(CheckpointFolder(root.path(), 5))->size() == kNumShards + 1);
  }
}

TEST_CASE("an old checkpoint whose manifest cannot be opened at the moment is not deleted") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/3);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  for (int64_t step = 2; step < 12; ++step) {
    SetDiskFaults(absl::StrCat(root.Path("ckpt-1"), ",open,manifest.json,*,EMFILE"));
    const absl::StatusOr<std::string> saved = job.Save(step);
    Repair(root);
    REQUIRE(saved.ok());
    REQUIRE(StepOfSound(root.Path("ckpt-1")).ok());
    std::filesystem::remove_all(*saved);
  }
}

TEST_CASE("nothing is deleted while a manifest cannot be read, and a warning says so") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/1);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  const std::string left = root.Write(".lockstep-tmp-of-a-killed-save", "");
  // It is opened, so that the checkpoint is known to be there.
  SetDiskFaults(absl::StrCat(root.Path("ckpt-1"), ",read,manifest.json,*,EIO"));
  const absl::StatusOr<std::string> saved = job.Save(2);
  Repair(root);
  REQUIRE(saved.ok());
  CHECK(absl::StrContains(absl::StrJoin(job.warnings(), "\n"), root.Path("ckpt-1/manifest.json")));
  CHECK(StepOfSound(root.Path("ckpt-1")).ok());
  CHECK_FALSE(std::filesystem::exists(left));
  // The next save deletes what this one left.
  REQUIRE(job.Save(3).ok());
  CHECK(job.warnings().empty());
  CHECK(*ListCheckpoints(root.path()) == std::vector<int64_t>{3});
}

TEST_CASE("a run whose own checkpoint cannot be read does not go back to where it began") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/3);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  FolderOwner owner = **ReadOwner(root.path());
  owner.source = "/elsewhere/ckpt-7";
  REQUIRE(WriteOwner(root.path(), owner, nullptr).ok());
  CHECK(*FindSource(root.path()) == "");
  SetDiskFaults(absl::StrCat(root.Path("ckpt-1"), ",read,manifest.json,*,EIO"));
  const absl::StatusOr<std::string> source = FindSource(root.path());
  Repair(root);
  CHECK(IsStorageFailure(source.status()));
}

TEST_CASE("no checkpoint is passed over because a process is short of descriptors") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/3);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  REQUIRE(job.Save(2).ok());
  const std::string fault =
      GENERATE("/ckpt-2,open,manifest.json", "/ckpt-2,open,shard-1-of-2", ",open,OWNER.json");
  CAPTURE(fault);
  SetDiskFaults(absl::StrCat(root.path(), fault, ",1,EMFILE"));
  std::vector<std::string> warnings;
  const absl::StatusOr<std::string> found = ResolveCheckpoint(root.path(), &warnings);
  Repair(root);
  CHECK(absl::IsResourceExhausted(found.status()));
  CHECK(IsStorageFailure(found.status()));
  CHECK(warnings.empty());
  CHECK(*ResolveCheckpoint(root.path()) == root.Path("ckpt-2"));
}

TEST_CASE("a new run shares its epoch with no checkpoint that the disk does not show") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/3);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  const uint64_t epoch = ReadManifest(root.Path("ckpt-1"))->epoch;
  const std::string operation = GENERATE("open", "read");
  const bool has_owner = GENERATE(true, false);
  if (!has_owner) std::filesystem::remove(root.Path("OWNER.json"));
  SetDiskFaults(absl::StrCat(root.Path("ckpt-1"), ",", operation, ",manifest.json,*,EIO"));
  const absl::StatusOr<uint64_t> highest = HighestEpoch(root.path());
  Repair(root);
  INFO(highest.status().ToString());
  if (has_owner) {
    // The owner's epoch is none below those of its checkpoints.
    REQUIRE(highest.ok());
    CHECK(*highest == epoch);
  } else {
    CHECK(IsStorageFailure(highest.status()));
    const std::string text(highest.status().message());
    CHECK(absl::StrContains(text, root.Path("ckpt-1/manifest.json")));
    CHECK(absl::StrContains(text, "no OWNER.json"));
    CHECK(absl::StrContains(text,
                            ". Remedy: start again once it can be read, or move ckpt-1 out of "));
    CHECK(*HighestEpoch(root.path()) == epoch);
  }
}

TEST_CASE("a save that fails leaves nothing that takes room") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  Repair(root);
  SavingJob job(root.path(), 1, /*keep_last=*/3);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  // The second shard finds the disk full.
  SetDiskFaults(absl::StrCat(root.path(), ",write,shard-1-of-2,1,ENOSPC"));
  const absl::Status full = job.Save(2).status();
  Repair(root);
  CHECK(absl::IsResourceExhausted(full));
  CHECK_FALSE(std::filesystem::exists(root.Path("ckpt-2")));
  // Neither where that step has a checkpoint, which stays.
  SetDiskFaults(absl::StrCat(root.path(), ",write,shard-1-of-2,1,ENOSPC"));
  CHECK(absl::IsResourceExhausted(job.Save(1).status()));
  Repair(root);
  CHECK(ListFolder(root.Path("ckpt-1"))->size() == kNumShards + 1);
  CHECK(*NewestSound(root.path()) == 1);
}

TEST_CASE("writes and reads that take half of the bytes make the same files") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/1);
  SetDiskFaults(absl::StrCat(root.path(), ",write,,*,short;", root.path(), ",read,,*,short"));
  const bool taken = job.Take().ok();
  const bool saved = job.Save(1).ok();
  const absl::StatusOr<int64_t> newest = NewestSound(root.path());
  Repair(root);
  CHECK(taken);
  CHECK(saved);
  REQUIRE(newest.ok());
  CHECK(*newest == 1);
  CHECK(*NewestSound(root.path()) == 1);
}

TEST_CASE("a disk that takes no byte and says nothing fails a save") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/1);
  REQUIRE(job.Take().ok());
  SetDiskFaults(absl::StrCat(root.path(), ",write,shard-0,*,zero"));
  const absl::Status status = job.Save(1).status();
  Repair(root);
  CHECK(absl::StrContains(status.message(), TextOf(EIO)));
}

TEST_CASE("whatever operation of a restore fails, nothing wrong is read") {
  const Error errors[] = {{"EIO", EIO}, {"EMFILE", EMFILE}, {"ESTALE", ESTALE}};
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/2);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  REQUIRE(job.Save(2).ok());
  for (const Error& error : errors) {
    int operations = 0;
    int taken = 0, older = 0, refused = 0;
    while (true) {
      SetDiskFaults(Fault(root, operations + 1, error.name));
      std::vector<std::string> warnings;
      const absl::StatusOr<int64_t> step = NewestSound(root.path(), &warnings);
      const std::vector<std::string> failed = FailedDiskOperations();
      Repair(root);
      if (failed.empty()) break;
      ++operations;
      const std::string told =
          absl::StrCat(step.status().message(), "\n", absl::StrJoin(warnings, "\n"));
      INFO(error.name << " of operation " << operations << ", " << failed[0] << ": " << told);
      if (step.ok() && *step == 2) {
        ++taken;
      } else {
        step.ok() ? ++older : ++refused;
        if (step.ok()) CHECK(*step == 1);
        CHECK(absl::StrContains(told, root.path()));
        CHECK(absl::StrContains(told, TextOf(error.number)));
      }
    }
    CHECK(taken > 0);
    // Another one is not taken for want of descriptors.
    CHECK((older > 0) == (error.number != EMFILE));
    CHECK(refused > 0);
  }
}

TEST_CASE("the only checkpoint is not called damaged where its storage has failed") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/2);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  for (const char* fault : {",read,shard-0,*,EIO", ",open,ckpt-1/manifest.json,*,ESTALE"}) {
    CAPTURE(fault);
    SetDiskFaults(root.path() + fault);
    const absl::Status status = ResolveCheckpoint(root.path()).status();
    Repair(root);
    CHECK(IsStorageFailure(status));
    CHECK(absl::StrContains(status.message(), "no checkpoint that can be used; the newest: "));
  }
  CHECK(ResolveCheckpoint(root.path()).ok());
}

TEST_CASE("a run goes on from no abandoned checkpoint while its origin cannot be learnt") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/2);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  REQUIRE(job.Save(2).ok());
  const FolderOwner owner{.epoch = kEpoch + 1, .origin = {.epoch = kEpoch, .step = 1}};
  REQUIRE(WriteOwner(root.path(), owner, nullptr).ok());
  const auto [fault, file] = GENERATE(table<const char*, const char*>({
      {",read,ckpt-1/manifest.json,1,EIO", "ckpt-1/manifest.json"},
      {",read,OWNER.json,1,EIO", "OWNER.json"},
      {",open,OWNER.json,1,ESTALE", "OWNER.json"},
  }));
  CAPTURE(fault);
  SetDiskFaults(root.path() + fault);
  const absl::Status status = ResolveCheckpoint(root.path()).status();
  Repair(root);
  CHECK(IsStorageFailure(status));
  CHECK(absl::StrContains(status.message(), root.Path(file)));
  CHECK(ResolveCheckpoint(root.path()).value_or("") == root.Path("ckpt-1"));
}

TEST_CASE("a checkpoint whose manifest cannot be opened is not taken for a folder of checkpoints") {
  const TemporaryFolder root(TemporaryFolder::kInMemory);
  SavingJob job(root.path(), 1, /*keep_last=*/2);
  REQUIRE(job.Take().ok());
  REQUIRE(job.Save(1).ok());
  SetDiskFaults(absl::StrCat(root.path(), ",open,manifest.json,*,EIO"));
  const absl::Status status = ResolveCheckpoint(root.Path("ckpt-1")).status();
  Repair(root);
  CHECK(absl::StrContains(status.message(), root.Path("ckpt-1/manifest.json")));
  CHECK(absl::StrContains(status.message(), TextOf(EIO)));
}

}  // namespace
}  // namespace lockstep::chief
