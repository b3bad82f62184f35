// The scripts that are checked in, for tests.
#pragma once

#include <vector>

#include "tests/oracle/script.h"

namespace lockstep::oracle {

// Those of one kind; fails the test case when they cannot be read.
std::vector<Script> RecordedScripts(const std::string& kind);

// Places of the tensors in a script that are TensorFlow's answers, in float32 or float64 and with a
// number other than 0.
std::vector<nlohmann::json::json_pointer> AnsweredTensors(const Script& script);

// Changes one element of a tensor by `share` of its largest magnitude.
void Change(nlohmann::json* tensor, double share);

}  // namespace lockstep::oracle
