#include "chief/checkpoint/folder_claim.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/checkpoint/owner.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::chief {
namespace {

using test::TemporaryFolder;

FolderOwner Chief(uint64_t job, uint64_t epoch, uint64_t term, uint64_t chief) {
  return {.job = job,
          .epoch = epoch,
          .term = term,
          .chief = chief,
          .host = "a",
          .pid = static_cast<uint32_t>(chief)};
}

// Enters and takes, as a chief that starts does.
absl::Status Claim(FolderClaim* claim, const FolderOwner& wanted) {
  const absl::Status entered = claim->Enter(wanted);
  return entered.ok() ? claim->Take(wanted) : entered;
}

FolderOwner OwnerOf(const TemporaryFolder& root) { return **ReadOwner(root.path()); }

// Once, of this file.
void CheckWarns(FolderClaim* claim, const std::string& file) {
  const std::vector<std::string> warnings = claim->TakeWarnings();
  REQUIRE(warnings.size() == 1);
  INFO(warnings[0]);
  CHECK(warnings[0].starts_with(file));
  CHECK(absl::StrContains(warnings[0], "; tried again with the first save. Remedy: "));
  CHECK(claim->TakeWarnings().empty());
}

TEST_CASE("a chief owns the folder until another one has taken it") {
  const TemporaryFolder root;
  FolderClaim first(root.path());
  REQUIRE(Claim(&first, Chief(7, 1, 1, 10)).ok());
  CHECK(OwnerOf(root) == Chief(7, 1, 1, 10));
  CHECK(first.Ensure().ok());
  CHECK(first.Check().ok());
  // The first one is stopped, and holds the lock. The step shard has chosen the second.
  FolderClaim second(root.path());
  REQUIRE(Claim(&second, Chief(7, 1, 2, 20)).ok());
  CHECK(second.Check().ok());
  for (const absl::Status& status :
       {first.Check(), first.Ensure(), Claim(&first, Chief(7, 1, 1, 10)),
        first.Take(Chief(7, 1, 2, 10))}) {
    CHECK(status.code() == absl::StatusCode::kAborted);
    CHECK(absl::StrContains(status.message(), "its chief is process 20 on host a"));
  }
  CHECK(OwnerOf(root) == Chief(7, 1, 2, 20));
  // A next epoch of the first one's is later than the second's term.
  CHECK(Claim(&first, Chief(7, 2, 1, 10)).ok());
  CHECK(absl::IsAborted(second.Check()));
}

TEST_CASE("another job takes a folder with a higher epoch only, and not beside a live chief") {
  const TemporaryFolder root;
  {
    FolderClaim first(root.path());
    REQUIRE(Claim(&first, Chief(7, 3, 9, 10)).ok());
    FolderClaim beside(root.path());
    const absl::Status refused = beside.Enter(Chief(8, 4, 1, 20));
    CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
    CHECK(refused.message() ==
          root.Path("LOCK") +
              ": locked by process 10 on host a, the chief of job 7; the folder belongs to job 7 "
              "(epoch 3, term 9; its chief is process 10 on host a). Remedy: give each job a "
              "checkpoint.folder of its own, or wait until that process has ended");
    CHECK(OwnerOf(root).job == 7);
  }
  FolderClaim after(root.path());
  for (const uint64_t epoch : {1, 3}) {
    const absl::Status refused = after.Enter(Chief(8, epoch, 10, 20));
    CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
    CHECK(absl::StrContains(refused.message(), " belongs to job 7 (epoch 3"));
    CHECK(absl::StrContains(refused.message(), "Remedy: "));
  }
  CHECK(Claim(&after, Chief(8, 4, 1, 20)).ok());
  CHECK(OwnerOf(root).job == 8);
}

TEST_CASE("the origin of an epoch that goes on stays, a new epoch has its own") {
  const TemporaryFolder root;
  FolderOwner wanted = Chief(7, 2, 1, 10);
  wanted.origin = {.epoch = 1, .step = 500};
  wanted.source = "/elsewhere/ckpt-500";
  FolderClaim first(root.path());
  REQUIRE(Claim(&first, wanted).ok());
  CHECK(first.origin() == wanted.origin);
  FolderClaim second(root.path());
  REQUIRE(Claim(&second, Chief(7, 2, 2, 20)).ok());
  CHECK(second.origin() == wanted.origin);
  CHECK(OwnerOf(root).origin == wanted.origin);
  CHECK(OwnerOf(root).source == wanted.source);
  FolderClaim third(root.path());
  REQUIRE(Claim(&third, Chief(7, 3, 3, 30)).ok());
  CHECK(third.origin() == CheckpointOrigin());
  CHECK(OwnerOf(root).source.empty());
}

TEST_CASE("a folder that could not be written to is claimed with the first save") {
  const TemporaryFolder base;
  const std::string root = base.Path("checkpoints");
  FolderClaim claim(root);
  FolderOwner wanted = Chief(7, 1, 1, 10);
  wanted.origin = {.epoch = 0, .step = 5};
  REQUIRE(Claim(&claim, wanted).ok());
  CHECK_FALSE(claim.Ensure().ok());
  std::filesystem::create_directory(root);
  CHECK(claim.Ensure().ok());
  CHECK(**ReadOwner(root) == wanted);
  FolderClaim other(root);
  CHECK(ExitCodeFor(other.Enter(Chief(8, 2, 1, 20))) == ExitCode::kBadConfiguration);
  // What stands in the way of the two files does not stop a start either.
  const TemporaryFolder blocked;
  blocked.Write("LOCK/file", "");
  FolderClaim unlocked(blocked.path());
  CHECK(Claim(&unlocked, wanted).ok());
  CHECK(OwnerOf(blocked) == wanted);
  CheckWarns(&unlocked, blocked.Path("LOCK"));
}

TEST_CASE(
    "a start does not fail on a disk that takes no byte, and the first save claims the folder") {
  const TemporaryFolder root;
  FolderClaim claim(root.path());
  const FolderOwner wanted = Chief(7, 1, 1, 10);
  absl::Status claimed, saved;
  {
    const test::FileSizeLimit full(0);
    claimed = Claim(&claim, wanted);
    saved = claim.Ensure();
  }
  CHECK(claimed.ok());
  CheckWarns(&claim, root.Path("OWNER.json"));
  CHECK_FALSE(saved.ok());
  CHECK_FALSE(ReadOwner(root.path())->has_value());
  // The lock holds, though nobody can say whose it is.
  FolderClaim other(root.path());
  CHECK(ExitCodeFor(other.Enter(Chief(8, 2, 1, 20))) == ExitCode::kBadConfiguration);
  CHECK(claim.Ensure().ok());
  CHECK(OwnerOf(root) == wanted);
}

TEST_CASE("of two that could not claim a full disk the one of the later term does, however late") {
  const TemporaryFolder base;
  const std::string root = base.Path("checkpoints");
  FolderClaim first(root), second(root), third(root);
  REQUIRE(Claim(&first, Chief(7, 1, 1, 10)).ok());
  REQUIRE(Claim(&second, Chief(7, 1, 2, 20)).ok());
  REQUIRE(Claim(&third, Chief(9, 1, 4, 30)).ok());
  std::filesystem::create_directory(root);
  CHECK(first.Ensure().ok());
  CHECK(second.Ensure().ok());
  CHECK(absl::IsAborted(first.Ensure()));
  CHECK(ExitCodeFor(third.Ensure()) == ExitCode::kBadConfiguration);
  CHECK((**ReadOwner(root)).chief == 20);
}

TEST_CASE("an owner that cannot be read, or was removed") {
  const TemporaryFolder root;
  FolderClaim claim(root.path());
  REQUIRE(Claim(&claim, Chief(7, 1, 1, 10)).ok());
  std::filesystem::remove(root.Path("OWNER.json"));
  CHECK(claim.Check().ok());
  CHECK(claim.Ensure().ok());
  CHECK(OwnerOf(root) == Chief(7, 1, 1, 10));
  root.Write("OWNER.json", "{}");
  FolderClaim other(root.path());
  for (const absl::Status& status : {claim.Check(), claim.Ensure(), other.Enter(Chief(7, 1, 2, 20)),
                                     other.Take(Chief(7, 1, 2, 20))}) {
    CHECK(ExitCodeFor(status) == ExitCode::kCorruptInput);
    CHECK(absl::StrContains(status.message(), "Remedy: "));
  }
  CHECK(root.Read("OWNER.json") == "{}");
}

TEST_CASE("a process's next job has its lock") {
  const TemporaryFolder root;
  FolderClaim other(root.path());
  {
    FolderClaim second(root.path());
    {
      FolderClaim first(root.path());
      REQUIRE(Claim(&first, Chief(7, 1, 1, 10)).ok());
      second.InheritLock(&first);
    }
    // Another job's name, since every ps was started again.
    REQUIRE(Claim(&second, Chief(8, 2, 1, 10)).ok());
    CHECK(absl::IsFailedPrecondition(other.Enter(Chief(9, 3, 1, 20))));
  }
  CHECK(other.Enter(Chief(9, 3, 1, 20)).ok());
}

}  // namespace
}  // namespace lockstep::chief
