// Commands that a user got wrong: how they end, and what they say.
#pragma once

#include <string>
#include <vector>

namespace lockstep::test {

// The command ends within ten seconds with this code, and its output holds all of `words`. As tests
// of Catch: call it from the test's thread.
void CheckEnds(std::vector<std::string> command, int exit_code,
               const std::vector<std::string>& words, std::vector<std::string> environment = {});

}  // namespace lockstep::test
