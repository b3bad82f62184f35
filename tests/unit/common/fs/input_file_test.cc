#include "common/fs/input_file.h"

#include <sys/stat.h>

#include <array>
#include <catch2/catch.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using test::TemporaryFolder;

TEST_CASE("a file is read whole up to and including the limit") {
  const TemporaryFolder folder;
  for (const size_t size : {0u, 1u, 65535u, 65536u, 65537u, 300000u}) {
    CAPTURE(size);
    std::string contents(size, 'x');
    if (size > 0) contents.back() = '\0';
    const std::string path = folder.Write("a", contents);
    const auto read = ReadFile(path, size);
    REQUIRE(read.ok());
    CHECK((*read == contents));
    if (size == 0) continue;
    const absl::Status over = ReadFile(path, size - 1).status();
    CHECK(over.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(over.message(), path));
  }
}

TEST_CASE("a missing file is NOT_FOUND with the exit code of an input") {
  const absl::Status status = ReadFile("/no/such/file", 10).status();
  CHECK(status.code() == absl::StatusCode::kNotFound);
  CHECK(status.message() == "/no/such/file: cannot open: No such file or directory");
  CHECK(ExitCodeFor(status) == ExitCode::kInputNotFound);
  CHECK(InputFile::Open("/no/such/file").status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("what is no regular file is refused at once, by what it is") {
  const TemporaryFolder folder;
  const std::string pipe = folder.Path("pipe"), socket_path = folder.Path("socket");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  REQUIRE(::mknod(socket_path.c_str(), S_IFSOCK | 0600, 0) == 0);
  const std::pair<std::string, std::string> cases[] = {{pipe, "a named pipe"},
                                                       {socket_path, "a socket"},
                                                       {folder.path(), "a directory"},
                                                       {"/dev/null", "a device"},
                                                       {"/dev/zero", "a device"}};
  for (const auto& [path, kind] : cases) {
    CAPTURE(path);
    for (const absl::Status& status :
         {ReadFile(path, 100000).status(), InputFile::Open(path).status()}) {
      CHECK(status.code() == absl::StatusCode::kInvalidArgument);
      CHECK(status.message() == path + ": expected a regular file, got " + kind);
      CHECK(ExitCodeFor(status) == ExitCode::kInputNotFound);
    }
  }
}

TEST_CASE("a file of the system that says no size is read whole, up to the limit") {
  const auto self = ReadFile("/proc/self/status", 1 << 20);
  REQUIRE(self.ok());
  CHECK(absl::StrContains(*self, "Pid:"));
  CHECK(ReadFile("/proc/self/status", 10).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("an input file reads at positions and says where it ends") {
  const TemporaryFolder folder;
  const auto file = InputFile::Open(folder.Write("a", "0123456789"));
  REQUIRE(file.ok());
  CHECK(file->size() == 10);
  std::array<char, 4> bytes;
  REQUIRE(file->ReadAt(6, std::as_writable_bytes(std::span(bytes))).ok());
  CHECK(std::string(bytes.data(), 4) == "6789");
  REQUIRE(file->ReadAt(10, {}).ok());
  const absl::Status past = file->ReadAt(8, std::as_writable_bytes(std::span(bytes)));
  CHECK(past.code() == absl::StatusCode::kDataLoss);
  CHECK(past.message() == file->path() + ": ends at byte 10, expected 2 bytes more");
}

}  // namespace
}  // namespace lockstep
