// Sign is the text in the logs of a job that shows that a fault was detected. Pure.
#pragma once

#include <string>

#include "tests/chaos/fault.h"

namespace lockstep::test {

struct Sign {
  enum class Log {
    kOthers,    // of any task but the one that is hit
    kBoth,      // of each task of a pair, about the other one
    kOwn,       // of the task that is hit
    kChiefs,    // of any chief
    kNobodies,  // no daemon logs such a fault
  };
  Log log = Log::kOthers;
  std::string text;  // empty: the name of the task that is hit, or of the other one of a pair
};

Sign SignOf(const Fault& fault);

}  // namespace lockstep::test
