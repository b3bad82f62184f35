#include "common/base/printable.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

TEST_CASE("plain text stays as it is") {
  CHECK(Printable("", 10) == "");
  CHECK(Printable("worker 1 (h\xC3\xB6st:2222)", 100) == "worker 1 (h\xC3\xB6st:2222)");
  CHECK(Printable("\xE2\x82\xAC \xF0\x9F\x98\x80", 100) == "\xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST_CASE("text of a peer makes no second line and moves no cursor") {
  CHECK(Printable("x\n2026-01-01 I chief: done\r", 100) == "x\\n2026-01-01 I chief: done\\r");
  CHECK(Printable("a\tb\x1B[2J\x7F", 100) == "a\\tb\\x1b[2J\\x7f");
  CHECK(Printable(std::string("a\0b", 3), 100) == "a\\x00b");
  // U+0085 and U+009B are a line end and the start of a terminal's command.
  CHECK(Printable("a\xC2\x85\xC2\x9B", 100) == "a\\xc2\\x85\\xc2\\x9b");
}

TEST_CASE("bytes that are not UTF-8 are shown as numbers") {
  CHECK(Printable("\xFF", 100) == "\\xff");
  CHECK(Printable("\xC0\xAF", 100) == "\\xc0\\xaf");           // overlong
  CHECK(Printable("\xED\xA0\x80", 100) == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(Printable("\xF5\x80\x80\x80", 100) == "\\xf5\\x80\\x80\\x80");
  CHECK(Printable("a\xE2\x82", 100) == "a\\xe2\\x82");  // cut off
  CHECK(Printable("\x80", 100) == "\\x80");
}

TEST_CASE("long text is cut between characters") {
  CHECK(Printable("abcdef", 6) == "abcdef");
  CHECK(Printable("abcdefg", 6) == "abcdef...");
  CHECK(Printable("ab\xE2\x82\xAC", 4) == "ab...");
  CHECK(Printable(std::string(1 << 20, '\n'), 1000).size() == 2003);
}

}  // namespace
}  // namespace lockstep
