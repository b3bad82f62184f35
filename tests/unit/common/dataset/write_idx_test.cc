#include "common/dataset/write_idx.h"

#include <catch2/catch.hpp>
#include <vector>

#include "common/dataset/idx.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/common/dataset/file_bytes.h"

namespace lockstep {
namespace {

TEST_CASE("a file of float32 records has the bytes of the format and is read again") {
  const test::TemporaryFolder folder;
  const std::string path = folder.Path("a.idx");
  const std::vector<float> values = {1, -2.5f, 0, 1e-30f, 16, 3};
  REQUIRE(WriteIdx(path, Shape({1, 3}), values).ok());
  const std::string bytes = folder.Read("a.idx");
  CHECK(bytes.size() == 4 + 4 * 3 + 4 * 6);
  // 1 and -2.5 as IEEE 754 has them.
  CHECK(bytes.substr(0, 24) ==
        test::Idx(0x0D, {2, 1, 3}, std::string("\x3f\x80\0\0\xc0\x20\0\0", 8)));
  const auto records = ReadIdx(path);
  REQUIRE(records.ok());
  CHECK(records->count == 2);
  CHECK(records->shape == Shape({1, 3}));
  REQUIRE(records->type == ElementType::kFloat32);
  VisitElements(*records,
                [&](auto all) { CHECK(std::vector<float>(all.begin(), all.end()) == values); });
}

TEST_CASE("a file that cannot be written is an error that names it") {
  const absl::Status status = WriteIdx("/no/such/folder/a.idx", Shape({1}), {1.0f});
  CHECK_THAT(std::string(status.message()), Catch::Matchers::Contains("/no/such/folder"));
}

}  // namespace
}  // namespace lockstep
