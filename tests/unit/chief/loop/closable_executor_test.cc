#include "chief/loop/closable_executor.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/chief/support/manual_executor.h"

namespace lockstep::chief {
namespace {

TEST_CASE("work of an owner that has closed its executor is not done any more") {
  ManualExecutor thread;
  ClosableExecutor closed(&thread);
  ClosableExecutor other(&thread);
  std::vector<int> done;
  closed.Post([&] { done.push_back(1); });
  thread.Run();
  closed.Post([&] { done.push_back(2); });
  other.Post([&] { done.push_back(3); });
  closed.Close();
  closed.Post([&] { done.push_back(4); });
  thread.Run();
  CHECK(done == std::vector<int>{1, 3});
}

}  // namespace
}  // namespace lockstep::chief
