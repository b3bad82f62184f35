// Data files whose sizes, counts and offsets are made to mislead: each is an error that names the
// file, before memory is taken for what they claim.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/exit_code.h"
#include "common/dataset/csv_reader.h"
#include "common/dataset/example_table.h"
#include "common/dataset/idx.h"
#include "common/dataset/measure.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

using test::CountingIdx;
using test::Gzip;
using test::Idx;
using test::TemporaryFolder;

void CheckRefused(const std::string& path, const absl::Status& status) {
  INFO(status.ToString());
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::StartsWith(path + ": byte ") && Catch::Contains("Remedy: "));
}

TEST_CASE("No extents of an IDX header end the process, whatever their type") {
  const std::vector<uint32_t> extents[] = {
      {1, 0xffffffff, 0x3fffffff},
      {1, 0xffffffff, 0x40000000},
      {1, 0xffffffff, 0x1fffffff},
      {1, 0xffffffff, 0x20000001},
      {1, 0xffffffff, 0x7fffffff},
      {1, 0x7fffffff, 0x7fffffff},
      {1, 0x80000000, 0x40000000},
      {2, 0x80000000, 0x80000000},
      {0xffffffff, 0x3fffffff},
      {0xffffffff, 0xffffffff},
      {0xffffffff},
      {1, 1, 1, 1, 1, 1, 1, 0xffffffff, 0x3fffffff},
      {2, 2, 2, 2, 2, 2, 2, 0xffffffff, 0x00ffffff},
      {0x10000, 0x10000, 0x10000, 0x7fff},
      {3, 0x55555555, 0x55555555},
  };
  const TemporaryFolder folder;
  for (const int type : {0x08, 0x09, 0x0b, 0x0c, 0x0d, 0x0e}) {
    for (const auto& of : extents) {
      CAPTURE(type, of);
      const std::string bytes = Idx(type, of, "abcd");
      for (const std::string& file : {bytes, Gzip(bytes)}) {
        const std::string path = folder.Write("data.idx", file);
        CheckRefused(path, ReadIdxHeader(path).status());
        CheckRefused(path, ReadIdx(path).status());
      }
    }
  }
}

TEST_CASE("The header of a gzip IDX file that claims what it cannot hold is refused by itself") {
  const TemporaryFolder folder;
  // 10 GB from a kilobyte.
  const std::string claims = folder.Write("claims.idx.gz", Gzip(Idx(8, {10, 1'000'000'000}, "")));
  CheckRefused(claims, ReadIdxHeader(claims).status());
  // 512 MiB that are there, from half a MiB.
  std::string bomb = Gzip(Idx(8, {512, 1 << 20}, ""));
  const std::string member = Gzip(std::string(1 << 20, '\0'));
  for (int i = 0; i < 512; ++i) bomb += member;
  const std::string path = folder.Write("bomb.idx.gz", bomb);
  const absl::Status status = ReadIdx(path).status();
  CheckRefused(path, status);
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("gunzip") && Catch::Contains(std::to_string(bomb.size())));
}

TEST_CASE(
    "A data file that does not fit the memory is refused with the bytes, before any is taken") {
  const TemporaryFolder folder;
  const std::string path = folder.Write("huge.idx", Idx(8, {1 << 13, 1 << 30}, ""));
  std::filesystem::resize_file(path, 12 + (uint64_t{1} << 43));  // 8 TiB of holes
  REQUIRE(ReadIdxHeader(path).ok());
  const absl::Status status = ReadIdx(path).status();
  CHECK(absl::IsResourceExhausted(status));
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(status.message()), Catch::StartsWith(path + ": ") &&
                                                Catch::Contains("8796093022208 bytes") &&
                                                Catch::Contains("Remedy: "));
}

TEST_CASE("No cut, flipped or repeated byte of an IDX header ends the process") {
  const TemporaryFolder folder;
  const std::string sound = CountingIdx({4, 3, 3});
  int accepted = 0;
  const auto read = [&](const std::string& bytes) {
    const std::string path = folder.Write("data.idx", bytes);
    const auto records = ReadIdx(path);
    if (!records.ok()) {
      CHECK_THAT(std::string(records.status().message()), Catch::StartsWith(path + ": "));
      return;
    }
    ++accepted;
    CHECK(records->bytes.size() == 36);
  };
  for (size_t at = 0; at < 16; ++at) {
    for (const int value : {0x00, 0x01, 0x08, 0x0e, 0x7f, 0x80, 0xff}) {
      std::string damaged = sound;
      damaged[at] = static_cast<char>(value);
      read(damaged);
      read(damaged.substr(0, at + 1));
    }
  }
  CHECK(accepted > 0);  // bytes that were so before
}

TEST_CASE("CSV files that mislead are refused with their line") {
  struct Case {
    const char* name;
    std::string bytes;
    std::string message;
  };
  const std::string header = "x,y,label\n";
  const Case cases[] = {
      {"gzip of a gzip", Gzip(Gzip(header + "1,2,0\n")), "no label column"},
      {"gzip cut in its trailer", Gzip(header).substr(0, Gzip(header).size() - 3), "gzip stream"},
      {"gzip and then text", Gzip(header + "1,2,0\n") + "3,4,1\n", "bytes behind the end"},
      {"a magic number alone", "\x1f\x8b", "middle of its gzip stream"},
      {"a number of 1 MiB", header + std::string(1 << 20, '9') + ",2,0\n", "line 2"},
      {"an exponent of 1 MiB", header + "1e" + std::string(1 << 20, '9') + ",2,0\n", "line 2"},
      {"a field of NULs", header + std::string(1000, '\0') + ",2,0\n", "line 2"},
      {"quotes without end", header + std::string(1001, '"'), "line 2"},
      {"a bell and an escape", header + "\a\x1b[2J,2,0\n", "\\x1b"},
      {"a short line", header + "1,2,3\n1,2\n", "line 3"},
  };
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::string path = folder.Write("data.csv", c.bytes);
    DataDef data;
    data.mutable_csv()->add_train(path);
    data.mutable_csv()->set_label_column("label");
    const ExampleSpec spec{.input_shape = Shape({2}), .num_outputs = 10};
    for (const absl::Status& status :
         {ReadExamples(data, Split::kTrain).status(), MeasureDataset(data, spec).status()}) {
      INFO(status.ToString());
      CHECK_FALSE(status.ok());
      const std::string message(status.message());
      CHECK_THAT(message, Catch::StartsWith(path + ": ") && Catch::Contains(c.message));
      CHECK_THAT(message, !Catch::Contains("\n") && !Catch::Contains("\x1b"));
      CHECK(message.size() < 600);
    }
  }
}

}  // namespace
}  // namespace lockstep
