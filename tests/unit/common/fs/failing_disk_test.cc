// What files and folders become when the disk fails. The system calls fail by themselves in no
// other way than here.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "tests/support/disk_faults.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::SetDiskFaults;
using test::TemporaryFolder;

TEST_CASE("whatever operation fails, an atomic file is the old one or the new one") {
  for (const char* error : {"ENOSPC", "EIO", "EDQUOT", "EROFS", "EACCES", "ESTALE"}) {
    const TemporaryFolder root;
    int operations = 0;
    while (true) {
      root.Write("a", "old");
      SetDiskFaults(absl::StrCat(root.path(), ",any,,", operations + 1, ",", error));
      const absl::Status status = WriteFileAtomically(root.Path("a"), "new contents");
      const std::vector<std::string> failed = test::FailedDiskOperations();
      SetDiskFaults("");
      if (failed.empty()) break;
      ++operations;
      INFO(error << " of operation " << operations << ", " << failed[0] << ": " << status);
      const std::string contents = root.Read("a");
      if (status.ok()) CHECK(contents == "new contents");
      // The folder's sync comes after the rename.
      const bool has_appeared = failed[0] == "sync " + root.path();
      if (!status.ok()) CHECK(contents == (has_appeared ? "new contents" : "old"));
      if (!status.ok()) CHECK(absl::StrContains(status.message(), root.path()));
      CHECK(*ListFolder(root.path()) == std::vector<std::string>{"a"});
    }
    CHECK(operations >= 7);
  }
}

TEST_CASE("a writer that dies in the middle leaves the old file or the new one") {
  for (int operation = 1;; ++operation) {
    const TemporaryFolder root;
    root.Write("a", "old");
    SetDiskFaults(absl::StrCat(root.path(), ",any,,", operation, ",stop"));
    const absl::Status status = WriteFileAtomically(root.Path("a"), "new contents");
    const size_t failed = test::FailedDiskOperations().size();
    SetDiskFaults("");
    if (failed == 0) break;
    INFO("operation " << operation << ": " << status);
    const std::string contents = root.Read("a");
    CHECK((contents == "new contents" || (contents == "old" && !status.ok())));
    REQUIRE(RemoveTemporaryFiles(root.path()).ok());
    CHECK(*ListFolder(root.path()) == std::vector<std::string>{"a"});
  }
}

TEST_CASE("a file whose sync or close fails does not appear, though its name is free") {
  for (const char* operation : {"sync", "close"}) {
    const TemporaryFolder root;
    SetDiskFaults(absl::StrCat(root.path(), ",", operation, ",.lockstep-tmp-,1,EIO"));
    const absl::Status status = WriteFileAtomically(root.Path("a"), "new");
    SetDiskFaults("");
    CHECK(absl::IsInternal(status));
    CHECK(ListFolder(root.path())->empty());
  }
}

TEST_CASE("a folder that may not last is made again with the next call") {
  const TemporaryFolder root;
  SetDiskFaults(absl::StrCat(root.path(), ",sync,,1,EIO"));
  const absl::Status failed = MakeFolders(root.Path("a"));
  const absl::Status again = MakeFolders(root.Path("a"));
  const std::vector<std::string> operations = test::MatchedDiskOperations();
  SetDiskFaults("");
  CHECK(absl::IsInternal(failed));
  CHECK(again.ok());
  CHECK(operations == std::vector<std::string>(2, "sync " + root.path()));
}

TEST_CASE("a disk that does not say whether there is a folder is no answer") {
  const TemporaryFolder root;
  CHECK(*FindFolder(root.path()));
  CHECK_FALSE(*FindFolder(root.Path("none")));
  CHECK_FALSE(*FindFolder(root.Write("file", "")));
  CHECK_FALSE(*FindFolder(root.Path("file/below")));
  SetDiskFaults(absl::StrCat(root.path(), ",stat,,*,EIO"));
  const absl::Status unknown = FindFolder(root.path()).status();
  const absl::Status made = MakeFolders(root.Path("a"));
  SetDiskFaults("");
  for (const absl::Status& status : {unknown, made}) {
    CHECK(absl::StrContains(status.message(), "cannot look for the folder: Input/output error"));
  }
}

}  // namespace
}  // namespace lockstep
