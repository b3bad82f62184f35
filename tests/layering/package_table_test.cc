// The checker itself: it must see what is wrong.
#include "tests/layering/package_table.h"

#include <catch2/catch.hpp>

namespace lockstep::layering {
namespace {

constexpr char kTable[] =
    "# comment\n"
    "library system: unistd.h sys/\n"
    "library threads: thread absl/synchronization/ common/base/gate.h\n"
    "library clock: chrono\n"
    "library grpc: grpcpp/\n"
    "library protobuf: google/protobuf/\n"
    "library onednn: dnnl*\n"
    "\n"
    "package proto:\n"
    "package common/base:\n"
    "package common/tensor:\n"
    "package common/client: common/tensor proto grpc\n"
    "package ps/step: pure common/tensor\n"
    "package worker/step: common/tensor common/client proto\n"
    "package worker/device/cpu: onednn\n";

std::vector<std::string> Check(const std::string& path, const std::string& text) {
  std::vector<std::string> mistakes;
  const PackageTable table = PackageTable::Parse(kTable, &mistakes);
  CHECK(mistakes.empty());
  return table.Violations({path, text});
}

TEST_CASE("what a row names, the base, abseil, std and the system may be included") {
  CHECK(Check("worker/step/loop.cc",
              "#include \"worker/step/loop.h\"\n"
              "#include <vector>\n"
              "#include <unistd.h>\n"
              "#include <sys/stat.h>\n"
              "#include <thread>\n"
              "#include <chrono>\n"
              "#include \"absl/status/status.h\"\n"
              "#include \"absl/synchronization/mutex.h\"\n"
              "#include \"common/base/gate.h\"\n"
              "#include \"common/tensor/tensor.h\"\n"
              "  #  include \"common/client/ps_control.h\"\n"
              "#include \"proto/ps.pb.h\"\n")
            .empty());
  CHECK(Check("worker/device/cpu/x.cc", "#include <dnnl.hpp>\n").empty());
  CHECK(Check("common/client/x.cc", "#include \"proto/ps.grpc.pb.h\"\n").empty());
}

TEST_CASE("each thing that a row does not name is seen, with file and line") {
  struct Row {
    const char* path;
    const char* include;
    const char* problem;
  };
  const Row rows[] = {
      {"ps/step/a.cc", "\"worker/step/loop.h\"", "ps/step may not include worker/step"},
      {"worker/step/a.h", "\"ps/step/step.h\"", "worker/step may not include ps/step"},
      {"common/tensor/a.h", "\"common/client/a.h\"", "may not include common/client"},
      {"ps/step/a.cc", "\"proto/ps.pb.h\"", "ps/step may not include proto"},
      {"worker/step/a.cc", "\"proto/ps.grpc.pb.h\"", "worker/step may not include grpc"},
      {"worker/step/a.cc", "<grpcpp/grpcpp.h>", "worker/step may not include grpc"},
      {"worker/step/a.cc", "\"grpcpp/grpcpp.h\"", "worker/step may not include grpc"},
      {"worker/step/a.cc", "<google/protobuf/message.h>", "may not include protobuf"},
      {"worker/step/a.cc", "<dnnl.hpp>", "worker/step may not include onednn"},
      {"worker/step/a.cc", "\"worker/device/cpu/x.h\"", "may not include worker/device/cpu"},
      {"worker/step/a.cc", "\"worker/step/sub/x.h\"", "may not include worker/step/sub"},
      {"ps/step/a.cc", "<thread>", "an algorithm without threads"},
      {"ps/step/a.cc", "\"absl/synchronization/mutex.h\"", "an algorithm without threads"},
      {"ps/step/a.cc", "\"common/base/gate.h\"", "an algorithm without threads"},
      {"ps/step/a.cc", "<chrono>", "an algorithm without clock"},
      {"worker/step/a.cc", "<prometheus/registry.h>", "belongs to no library"},
      {"worker/step/a.cc", "<zlib.h>", "belongs to no library"},
      {"worker/step/a.cc", "\"loop.h\"", "not a path from the root"},
      {"worker/step/a.cc", "<common/tensor/tensor.h>", "with quotes"},
      {"worker/step/a.cc", "\"tests/support/x.h\"", "may not include tests/support"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path, row.include);
    const auto violations =
        Check(row.path, "// text\n#include " + std::string(row.include) + "  // why\n");
    REQUIRE(violations.size() == 1);
    CHECK_THAT(violations[0],
               Catch::StartsWith(std::string(row.path) + ":2: ") && Catch::Contains(row.problem));
  }
}

TEST_CASE("what a program can hold is what the rows name, followed to the end") {
  std::vector<std::string> mistakes;
  const PackageTable table = PackageTable::Parse(kTable, &mistakes);
  CHECK(table.Reachable("worker/step") == std::set<std::string>{"common/base", "common/client",
                                                                "common/tensor", "grpc", "proto",
                                                                "worker/step"});
  CHECK(table.Reachable("ps/step") ==
        std::set<std::string>{"common/base", "common/tensor", "ps/step"});
}

TEST_CASE("rows and names that no source needs are seen") {
  std::vector<std::string> mistakes;
  const PackageTable table = PackageTable::Parse(
      "library zlib: zlib.h\nlibrary grpc: grpcpp/\npackage proto:\npackage common/fs: zlib\n"
      "package common/rpc: common/fs proto grpc\npackage ps: common/rpc proto\n",
      &mistakes);
  CHECK(mistakes.empty());
  CHECK(table.DeadRows({{"common/rpc/a.h", "#include \"proto/ps.grpc.pb.h\"\n"},
                        {"ps/a.cc", "#include \"common/rpc/a.h\"\n#include <grpcpp/a.h>\n"},
                        {"proto/a.proto", ""}}) ==
        std::vector<std::string>{"library zlib: no source includes it",
                                 "package common/fs: has no sources",
                                 "package common/rpc: does not include common/fs",
                                 "package ps: does not include proto"});
}

TEST_CASE("a folder without a row may hold no sources, below a package neither") {
  CHECK(Check("worker/new/a.cc", "").size() == 1);
  CHECK(Check("worker/step/sub/a.cc", "").size() == 1);
  CHECK(Check("worker/a.cc", "").size() == 1);
}

TEST_CASE("includes in comments and texts do not count") {
  CHECK(IncludesOf("// #include <a>\n/* #include <b> */\nx = \"#include <c>\";\n").empty());
  CHECK(IncludesOf("#\n#define include <a>\n#includes <a>\n#include A_MACRO\n\n").empty());
  const auto includes = IncludesOf("#include <a>\n  # include\t\"b/c.h\"  // why\n#include<d>");
  REQUIRE(includes.size() == 3);
  CHECK(includes[0].path == "a");
  CHECK_FALSE(includes[0].quoted);
  CHECK(includes[1].path == "b/c.h");
  CHECK(includes[1].quoted);
  CHECK(includes[1].line == 2);
  CHECK(includes[2].path == "d");
}

TEST_CASE("a table that makes no sense is seen") {
  for (const char* text :
       {"package a: b\n", "package a: b\npackage b:\n", "package a:\npackage a:\n", "packet a:\n",
        "package a\n", "library grpc: g/\npackage a: pure grpc\n"}) {
    CAPTURE(text);
    std::vector<std::string> mistakes;
    PackageTable::Parse(text, &mistakes);
    CHECK(mistakes.size() == 1);
  }
}

}  // namespace
}  // namespace lockstep::layering
