#include <catch2/catch.hpp>

#include "deploy/cli/text_table.h"

namespace lockstep::deploy {
namespace {

TEST_CASE("table columns are as wide as their widest cell and rows end without spaces") {
  CHECK(TextTable({{"a", "long header", "c"}, {"wide cell", "x"}, {"1", "2", "3"}}) ==
        "a          long header  c\n"
        "wide cell  x\n"
        "1          2            3\n");
}

}  // namespace
}  // namespace lockstep::deploy
