#include "common/config/text_file.h"

#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

absl::StatusOr<std::string> ReadBytes(const std::string& bytes) {
  test::TemporaryFolder folder;
  return ReadTextFile(folder.Write("file", bytes));
}

TEST_CASE("UTF-8 is read as it is, less a byte order mark") {
  for (const std::string& text :
       {std::string(), std::string("a\tb\r\n"), std::string("\u00e9\u20ac"),
        std::string("\xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF")}) {
    CHECK(*ReadBytes(text) == text);
    CHECK(*ReadBytes("\xEF\xBB\xBF" + text) == text);
  }
}

TEST_CASE("Bytes that are no UTF-8 are refused with their place") {
  for (const char* bad :
       {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xFF", "\xE2\x82", "\xF0\x8F\xBF\xBF"}) {
    const auto text = ReadBytes("line\nab" + std::string(bad));
    REQUIRE_FALSE(text.ok());
    CHECK(ExitCodeFor(text.status()) == ExitCode::kBadConfiguration);
    CHECK_THAT(std::string(text.status().message()), Contains("/file:2:3: expected UTF-8 text"));
  }
  CHECK_FALSE(ReadBytes(std::string("a\0b", 3)).ok());
}

TEST_CASE("A file of more than 16 MiB is refused, one of exactly that is not") {
  CHECK(ReadBytes(std::string(size_t{16} << 20, ' ')).ok());
  const auto text = ReadBytes(std::string((size_t{16} << 20) + 1, ' '));
  REQUIRE_FALSE(text.ok());
  CHECK(ExitCodeFor(text.status()) == ExitCode::kBadConfiguration);
}

TEST_CASE("A folder is no text file") {
  test::TemporaryFolder folder;
  const auto text = ReadTextFile(folder.path());
  REQUIRE_FALSE(text.ok());
  CHECK_THAT(std::string(text.status().message()), Contains("directory. Remedy: name a text file"));
}

TEST_CASE("A file that is missing or too large is told with the remedy") {
  const auto missing = ReadTextFile("/no/such/file");
  CHECK(ExitCodeFor(missing.status()) == ExitCode::kInputNotFound);
  CHECK(missing.status().message() ==
        "/no/such/file: cannot open: No such file or directory. Remedy: name a text file that "
        "exists and that this user may read");
  const auto large = ReadBytes(std::string((size_t{16} << 20) + 1, ' '));
  CHECK_THAT(std::string(large.status().message()), Contains("Remedy: "));
}

TEST_CASE("Lines and columns count from one") {
  CHECK(LineAndColumn("", 0) == "1:1");
  CHECK(LineAndColumn("ab\ncd", 1) == "1:2");
  CHECK(LineAndColumn("ab\ncd", 2) == "1:3");
  CHECK(LineAndColumn("ab\ncd", 3) == "2:1");
  CHECK(LineAndColumn("ab\ncd", 99) == "2:3");
}

}  // namespace
}  // namespace lockstep
