// A ps that the conformance suite can talk to, however the talking is done. A new way is one file
// that makes one of these, and a line in AllPs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/client/ps_control.h"
#include "tests/support/ps_data.h"

namespace lockstep {

// The text that SetView must bring.
inline constexpr char kTestCluster[] =
    "chief 0 h:1\n"
    "ps 0 h:2\n"
    "worker 0 h:3\n";

// A ps 0 that has not been called yet. Clients must go before it.
class PsUnderTest {
 public:
  virtual ~PsUnderTest() = default;
  virtual std::unique_ptr<PsControl> NewControl() = 0;
  virtual std::unique_ptr<PsData> NewData() = 0;
};

struct PsImplementation {
  std::string name;
  std::unique_ptr<PsUnderTest> (*make)();
  bool shares_memory = false;
};

std::unique_ptr<PsUnderTest> MakePsOverGrpc();
std::unique_ptr<PsUnderTest> MakePsOverSharedMemory();
std::unique_ptr<PsUnderTest> MakePsInProcess();

inline std::vector<PsImplementation> AllPs() {
  return {{"gRPC", MakePsOverGrpc},
          {"gRPC and shared memory", MakePsOverSharedMemory, true},
          {"in process", MakePsInProcess}};
}

}  // namespace lockstep
