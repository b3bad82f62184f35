// The one Catch2 main of all tests. It speaks Bazel's test protocol (filter, shards, XML) and
// closes with a count of test cases, which Catch2's own JUnit file does not hold.
#define CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_NO_POSIX_SIGNALS
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

class CountingListener : public Catch::TestEventListenerBase {
 public:
  using TestEventListenerBase::TestEventListenerBase;

  // A test case that asserts nothing fails. (Catch2's own warning is about sections, too.)
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    const bool asserts = stats.totals.assertions.total() > 0;
    if (!asserts) std::printf("no assertions in: %s\n", stats.testInfo.name.c_str());
    (stats.totals.testCases.failed > 0 || !asserts ? failed : passed)++;
  }

  static int passed;
  static int failed;
};
int CountingListener::passed = 0;
int CountingListener::failed = 0;

CATCH_REGISTER_LISTENER(CountingListener)

// Of the test cases that the filters select, every n-th, as TEST_TOTAL_SHARDS and TEST_SHARD_INDEX
// ask.
std::vector<std::string> NamesOfShard(const Catch::ConfigData& filters, int shard, int total) {
  const Catch::Config config(filters);
  std::vector<std::string> names;
  int index = 0;
  for (const auto& test :
       Catch::filterTests(Catch::getAllTestCasesSorted(config), config.testSpec(), config)) {
    if (index++ % total == shard) names.push_back(test.name);
  }
  return names;
}

std::string Escaped(const std::string& name) {
  std::string escaped;
  for (char c : name) {
    if (c == ',' || c == '[' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

int main(int argc, char** argv) {
  Catch::Session session;
  if (int error = session.applyCommandLine(argc, argv)) return error;
  auto& config = session.configData();
  if (const char* filter = std::getenv("TESTBRIDGE_TEST_ONLY"))
    config.testsOrTags.push_back(filter);
  if (const char* total = std::getenv("TEST_TOTAL_SHARDS")) {
    if (const char* status = std::getenv("TEST_SHARD_STATUS_FILE")) {
      if (FILE* file = std::fopen(status, "w")) std::fclose(file);
    }
    const auto names =
        NamesOfShard(config, std::atoi(std::getenv("TEST_SHARD_INDEX")), std::atoi(total));
    std::string spec;
    for (const auto& name : names) spec += (spec.empty() ? "" : ",") + Escaped(name);
    if (spec.empty()) return 0;
    config.testsOrTags = {spec};
  }
  int result = session.run();
  if (result == 0 && CountingListener::failed > 0) result = 1;
  std::printf("%d passed, %d failed\n", CountingListener::passed, CountingListener::failed);
  return result;
}
