#include <utility>

#include "tests/conformance/ps_under_test.h"
#include "tests/support/in_process_ps.h"

namespace lockstep {
namespace {

class PsInProcess final : public PsUnderTest {
 public:
  ~PsInProcess() override { shard_.Stop(); }
  std::unique_ptr<PsControl> NewControl() override {
    return MakeInProcessControl(&shard_, Incarnation(17), &watch_, &finisher_);
  }
  std::unique_ptr<PsData> NewData() override { return MakeInProcessData(&shard_); }

 private:
  ps::Shard shard_{ps::ShardOptions{}};
  ps::CommandWatch watch_{Clock::Real()};
  ps::JobFinisher finisher_{&shard_, &watch_};
};

}  // namespace

std::unique_ptr<PsUnderTest> MakePsInProcess() { return std::make_unique<PsInProcess>(); }

}  // namespace lockstep
