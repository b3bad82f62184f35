#include "common/fs/input_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <thread>

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

TEST_CASE("a folder is no file") {
  CHECK_FALSE(ReadFile("/tmp", 10).ok());
  CHECK(InputFile::Open("/tmp").status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("an endless file stops at the limit") {
  CHECK(ReadFile("/dev/zero", 100000).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a pipe is read to its end, and refused where positions are needed") {
  const TemporaryFolder folder;
  const std::string path = folder.Path("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK(InputFile::Open(path).status().code() == absl::StatusCode::kInvalidArgument);
  const std::string contents(200000, 'p');
  std::thread writer([&] { folder.Write("pipe", contents); });
  const auto read = ReadFile(path, 1000000);
  writer.join();
  REQUIRE(read.ok());
  CHECK((*read == contents));
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
