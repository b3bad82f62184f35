// What the programs are linked from, as the build graph says.
#include <catch2/catch.hpp>
#include <sstream>

#include "tests/layering/package_table.h"
#include "tests/layering/source_tree.h"

namespace lockstep::layering {
namespace {

// Packages and libraries that a binary is linked from: "ps/step", "grpc".
std::set<std::string> LinkedInto(const std::string& binary) {
  std::set<std::string> names;
  std::istringstream labels(ReadInput("tests/layering/" + binary + "_deps"));
  for (std::string label; labels >> label;) {
    // In the graph of every program, in the program under a sanitizer only.
    if (label == "//tests/support:tsan") continue;
    const size_t colon = label.find(':');
    const std::string target = label.substr(colon + 1);
    if (label.rfind("//", 0) == 0) {
      names.insert(label.substr(2, colon - 2));
    } else if (label.rfind("@system//", 0) == 0) {
      // gRPC's parts are libraries of their own to the linker.
      names.insert(target.rfind("grpc_", 0) == 0 ? "grpc" : target);
    } else if (label.rfind("@local_cuda//", 0) == 0) {
      names.insert("cuda");
    }
  }
  return names;
}

TEST_CASE("a program holds only what the rows of its packages reach") {
  std::vector<std::string> mistakes;
  const PackageTable table =
      PackageTable::Parse(ReadInput("tests/layering/packages.txt"), &mistakes);
  for (const std::string binary : {"ps", "worker", "chief"}) {
    std::set<std::string> allowed = table.Reachable(binary);
    allowed.insert("absl");
    if (allowed.contains("proto")) allowed.insert("protobuf");
    for (const std::string& name : LinkedInto(binary)) {
      INFO(binary << " is linked from " << name);
      CHECK(allowed.contains(name));
    }
  }
}

TEST_CASE("no role is linked from another, nor from tests") {
  for (const std::string binary : {"ps", "worker", "chief"}) {
    const std::set<std::string> linked = LinkedInto(binary);
    CHECK(linked.contains("common/base"));
    for (const std::string other : {"ps", "worker", "chief", "tests"}) {
      if (other == binary) continue;
      for (const std::string& name : linked) {
        if (name == other || name.rfind(other + "/", 0) == 0)
          FAIL_CHECK(binary << " is linked from " << name);
      }
    }
    CHECK_FALSE(linked.contains("catch2"));
  }
}

TEST_CASE("a ps and a chief are not linked from oneDNN, a worker is") {
  for (const std::string binary : {"ps", "chief"}) {
    const std::set<std::string> linked = LinkedInto(binary);
    CHECK_FALSE(linked.contains("onednn"));
    CHECK(linked.contains("grpc"));
  }
  CHECK(LinkedInto("worker").contains("onednn"));
}

TEST_CASE("no program is linked from CUDA's libraries, which a worker opens at run time") {
  for (const std::string binary : {"ps", "worker", "chief", "predict"}) {
    CHECK_FALSE(LinkedInto(binary).contains("cuda"));
  }
  CHECK(LinkedInto("worker").contains("worker/device/cuda"));
}

TEST_CASE("using a trained model needs no network") {
  const std::set<std::string> linked = LinkedInto("predict");
  CHECK(linked.contains("common/checkpoint"));
  CHECK_FALSE(linked.contains("grpc"));
}

}  // namespace
}  // namespace lockstep::layering
