// Replays the inputs that are checked in: examples of each kind, and every one that a fuzzer has
// found something with.
#include <google/protobuf/descriptor.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "absl/types/span.h"
#include "tests/fuzz/service_calls.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = "tests/fuzz/corpus";

std::string Contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("no input of the corpora ends a reader") {
  for (const std::string& name : TargetNames()) {
    INFO(name);
    int inputs = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus / name)) {
      INFO(entry.path().string());
      const std::string input = Contents(entry.path());
      FindTarget(name)(input);
      // Each one cut short, too, in twenty places.
      for (size_t i = 0; i < 20; ++i) FindTarget(name)(input.substr(0, input.size() * i / 20));
      ++inputs;
    }
    CHECK(inputs > 0);
  }
}

using Methods = std::set<std::string>;

// Of these services, the methods that the corpus calls; the calls of an input begin after `prefix`
// bytes.
Methods MethodsCalledBy(const std::string& target, absl::Span<const absl::string_view> services,
                        size_t prefix) {
  Methods called;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus / target)) {
    for (const ServiceCall& call : CallsOf(services, Contents(entry.path()).substr(prefix))) {
      called.insert(call.method);
    }
  }
  return called;
}

Methods MethodsOf(const std::string& service) {
  const auto* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  Methods names;
  for (int i = 0; i < descriptor->method_count(); ++i) {
    names.insert(descriptor->method(i)->name());
  }
  return names;
}

TEST_CASE("the corpora call every method, each by a number of its own") {
  struct Row {
    std::string target;
    std::string service;
    size_t prefix;
  };
  for (const Row& row :
       {Row{"ps_methods", "lockstep.ParameterServer", 0}, Row{"chief_methods", "lockstep.Chief", 1},
        Row{"peer_methods", "lockstep.Peer", 1}}) {
    CHECK(MethodsCalledBy(row.target, {row.service}, row.prefix) == MethodsOf(row.service));
  }
  const Methods of_operators = MethodsOf("lockstep.JobControl");
  Methods of_job = MethodsOf("lockstep.Chief");
  of_job.insert(of_operators.begin(), of_operators.end());
  CHECK(MethodsCalledBy("job_control", {"lockstep.Chief", "lockstep.JobControl"}, 1) == of_job);
}

TEST_CASE("every corpus has a target") {
  const std::vector<std::string> names = TargetNames();
  CHECK(names.size() >= 20);
  std::set<std::string> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(kCorpus)) {
    folders.insert(entry.path().filename().string());
  }
  CHECK(folders == std::set<std::string>(names.begin(), names.end()));
}

}  // namespace
}  // namespace lockstep::fuzz
