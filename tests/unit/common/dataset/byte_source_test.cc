#include "common/dataset/byte_source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using test::Gzip;
using test::TemporaryFolder;

constexpr int64_t kMiB = 1 << 20;

// Reads to the end or to the first error; `read` gets how much came.
absl::Status ReadAll(ByteSource& source, int64_t* read) {
  std::vector<std::byte> piece(kMiB);
  while (true) {
    const auto got = source.Read(absl::MakeSpan(piece));
    if (!got.ok()) return got.status();
    *read += static_cast<int64_t>(*got);
    if (*got < piece.size()) return absl::OkStatus();
  }
}

// A gzip file of so many members with a MiB of zeros each: a thousandth of it is stored.
std::string Zeros(int members) {
  const std::string member = Gzip(std::string(kMiB, '\0'));
  std::string file;
  for (int i = 0; i < members; ++i) file += member;
  return file;
}

TEST_CASE("A data file that is no regular file is refused at once, by what it is") {
  const TemporaryFolder folder;
  const std::string pipe = folder.Path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const auto& [path, kind] : {std::pair<std::string, std::string>(pipe, "a named pipe"),
                                   {folder.path(), "a directory"},
                                   {"/dev/zero", "a device"}}) {
    const absl::Status status = ByteSource::Open(path).status();
    CHECK_THAT(std::string(status.message()), Catch::StartsWith(path + ": ") &&
                                                  Catch::Contains("got " + kind) &&
                                                  Catch::Contains("Remedy: "));
    CHECK(ExitCodeFor(status) == ExitCode::kInputNotFound);
  }
}

TEST_CASE("A gzip file that expands without end is given up, with a way out") {
  const TemporaryFolder folder;
  auto source = ByteSource::Open(folder.Write("zeros.gz", Zeros(300)));
  REQUIRE(source.ok());
  CHECK((*source)->max_size() == 256 * kMiB);
  int64_t read = 0;
  const absl::Status status = ReadAll(**source, &read);
  CHECK(absl::IsDataLoss(status));
  CHECK(read == 256 * kMiB);
  CHECK_THAT(std::string(status.message()), Catch::Contains("zeros.gz") &&
                                                Catch::Contains("500 times") &&
                                                Catch::Contains("Remedy: decompress the file"));
}

TEST_CASE("A small gzip file may expand as far as it does") {
  const TemporaryFolder folder;
  auto source = ByteSource::Open(folder.Write("zeros.gz", Zeros(200)));
  REQUIRE(source.ok());
  int64_t read = 0;
  CHECK(ReadAll(**source, &read).ok());
  CHECK(read == 200 * kMiB);
}

TEST_CASE("A plain file gives what it had when it was opened, and says so when it is cut") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("data", std::string(3 * kMiB, 'x'));
  auto source = ByteSource::Open(path);
  REQUIRE(source.ok());
  CHECK((*source)->max_size() == 3 * kMiB);
  REQUIRE(::truncate(path.c_str(), kMiB) == 0);
  int64_t read = 0;
  const absl::Status status = ReadAll(**source, &read);
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("ends at byte 1048576"));
}

}  // namespace
}  // namespace lockstep
