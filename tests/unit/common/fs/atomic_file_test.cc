#include "common/fs/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::FileSizeLimit;
using test::TemporaryFolder;

TEST_CASE("a file written atomically holds what was given and nothing is left beside it") {
  const TemporaryFolder folder;
  const std::string contents("zero \0 inside\n", 14);
  REQUIRE(WriteFileAtomically(folder.Path("a"), contents).ok());
  CHECK(folder.Read("a") == contents);
  REQUIRE(WriteFileAtomically(folder.Path("a"), "").ok());
  CHECK(folder.Read("a").empty());
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("an atomic file is not readable by everybody") {
  const TemporaryFolder folder;
  REQUIRE(WriteFileAtomically(folder.Path("a"), "x").ok());
  struct stat info;
  REQUIRE(::stat(folder.Path("a").c_str(), &info) == 0);
  CHECK((info.st_mode & 0027) == 0);
}

TEST_CASE("a file is not there before Commit and a dropped one leaves the old content") {
  const TemporaryFolder folder;
  folder.Write("a", "old");
  {
    auto file = AtomicFile::Create(folder.Path("a"));
    REQUIRE(file.ok());
    REQUIRE(file->Append("new").ok());
    CHECK(folder.Read("a") == "old");
    CHECK(ListFolder(folder.path())->size() == 2);
  }
  CHECK(folder.Read("a") == "old");
  CHECK(ListFolder(folder.path())->size() == 1);
}

TEST_CASE("pieces are joined in order and a moved file still commits") {
  const TemporaryFolder folder;
  auto created = AtomicFile::Create(folder.Path("a"));
  REQUIRE(created.ok());
  AtomicFile file = *std::move(created);
  const std::string piece(100000, 'p');
  REQUIRE(file.Append("begin ").ok());
  REQUIRE(file.Append(piece).ok());
  REQUIRE(file.Append(" end").ok());
  REQUIRE(file.Commit().ok());
  CHECK(folder.Read("a") == "begin " + piece + " end");
}

TEST_CASE("a write that fails half-way removes its temporary file and is not forgotten") {
  const TemporaryFolder folder;
  folder.Write("a", "old");
  auto file = AtomicFile::Create(folder.Path("a"));
  REQUIRE(file.ok());
  absl::Status status;
  {
    const FileSizeLimit limit(1000);
    status = file->Append(std::string(5000, 'x'));
  }
  CHECK_FALSE(status.ok());
  CHECK(absl::StrContains(status.message(), folder.Path("a")));
  CHECK(ExitCodeFor(status) == ExitCode::kCannotCreate);
  CHECK(file->Append("y") == status);
  CHECK(file->Commit() == status);
  CHECK(folder.Read("a") == "old");
  CHECK(ListFolder(folder.path())->size() == 1);
}

TEST_CASE("a writer that may not publish any more leaves the old content and nothing else") {
  const TemporaryFolder folder;
  folder.Write("a", "old");
  auto file = AtomicFile::Create(folder.Path("a"));
  REQUIRE(file.ok());
  REQUIRE(file->Append("new").ok());
  int asked = 0;
  const absl::Status refused = file->Commit([&] {
    ++asked;
    CHECK(ListFolder(folder.path())->size() == 2);  // all is written
    return absl::AbortedError("replaced");
  });
  CHECK(refused == absl::AbortedError("replaced"));
  CHECK(file->Commit() == refused);
  CHECK(asked == 1);
  CHECK(folder.Read("a") == "old");
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"a"});

  REQUIRE(WriteFileAtomically(folder.Path("a"), "new", [&] {
            CHECK(folder.Read("a") == "old");
            return absl::OkStatus();
          }).ok());
  CHECK(folder.Read("a") == "new");
}

TEST_CASE("a rename that fails leaves no temporary file") {
  const TemporaryFolder folder;
  folder.Write("a/inside", "x");
  const absl::Status status = WriteFileAtomically(folder.Path("a"), "new");
  CHECK_FALSE(status.ok());
  CHECK(absl::StrContains(status.message(), "cannot rename"));
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("a symbolic link is replaced, not written through") {
  const TemporaryFolder folder;
  folder.Write("target", "safe");
  REQUIRE(::symlink("target", folder.Path("link").c_str()) == 0);
  REQUIRE(WriteFileAtomically(folder.Path("link"), "new").ok());
  CHECK(folder.Read("target") == "safe");
  CHECK(folder.Read("link") == "new");
}

TEST_CASE("a missing folder is NOT_FOUND naming it, with the exit code of an output") {
  const TemporaryFolder folder;
  const absl::Status status = WriteFileAtomically(folder.Path("no/a"), "x");
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(absl::StrContains(status.message(), folder.Path("no")));
  CHECK(ExitCodeFor(status) == ExitCode::kCannotCreate);
}

TEST_CASE("what is not the name of a file is refused") {
  const TemporaryFolder folder;
  for (const char* name : {"", "/", ".", "..", "a/", "a/.."}) {
    CAPTURE(name);
    const std::string path = *name == '\0' || *name == '/' ? name : folder.Path(name);
    CHECK(WriteFileAtomically(path, "x").code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("the longest name that a folder takes can be written") {
  const TemporaryFolder folder;
  CHECK(WriteFileAtomically(folder.Path(std::string(255, 'n')), "x").ok());
  CHECK_FALSE(WriteFileAtomically(folder.Path(std::string(256, 'n')), "x").ok());
}

TEST_CASE("temporary files of a crash are removed and others stay") {
  const TemporaryFolder folder;
  {
    auto file = AtomicFile::Create(folder.Path("a"));
    REQUIRE(file.ok());
    folder.Write("b", "stays");
    REQUIRE(RemoveTemporaryFiles(folder.path()).ok());
    CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"b"});
    CHECK_FALSE(file->Commit().ok());
  }
  CHECK(*ListFolder(folder.path()) == std::vector<std::string>{"b"});
}

TEST_CASE("the error number decides code and exit code") {
  struct Row {
    int error_number;
    absl::StatusCode code;
    ExitCode write;
    ExitCode read;
  };
  const Row rows[] = {
      {ENOSPC, absl::StatusCode::kResourceExhausted, ExitCode::kPeersLost,
       ExitCode::kInputNotFound},
      {EDQUOT, absl::StatusCode::kResourceExhausted, ExitCode::kPeersLost,
       ExitCode::kInputNotFound},
      {EACCES, absl::StatusCode::kPermissionDenied, ExitCode::kCannotCreate,
       ExitCode::kInputNotFound},
      {EROFS, absl::StatusCode::kPermissionDenied, ExitCode::kCannotCreate,
       ExitCode::kInputNotFound},
      {ENOENT, absl::StatusCode::kNotFound, ExitCode::kCannotCreate, ExitCode::kInputNotFound},
      {EIO, absl::StatusCode::kInternal, ExitCode::kIoError, ExitCode::kIoError},
  };
  for (const Row& row : rows) {
    CAPTURE(row.error_number);
    const absl::Status write = WriteError("/p", "write", row.error_number);
    CHECK(write.code() == row.code);
    CHECK(ExitCodeFor(write) == row.write);
    CHECK(ExitCodeFor(ReadError("/p", "read", row.error_number)) == row.read);
  }
  // In a call between processes abseil's code would say that another chief commands, that the save
  // has been made, or that the ps is away.
  for (const int number : {ESTALE, EDEADLK, EEXIST, ECANCELED, ETIMEDOUT, EHOSTDOWN}) {
    CAPTURE(number);
    CHECK(absl::IsInternal(WriteError("/p", "write", number)));
    CHECK(absl::IsInternal(ReadError("/p", "read", number)));
  }
  CHECK(WriteError("/p", "write", ENOSPC).message() == "/p: cannot write: No space left on device");
}

}  // namespace
}  // namespace lockstep
