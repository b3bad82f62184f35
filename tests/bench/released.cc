#include "tests/bench/released.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tests/bench/peer_process.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kLongest = 10'000'000;

}  // namespace

Measure MedianReleased(int64_t release_every, int steps, RunReleased run) {
  return [period = release_every, steps, run = std::move(run)]() mutable -> absl::StatusOr<double> {
    for (; period <= kLongest; period *= 2) {
      LOCKSTEP_ASSIGN_OR_RETURN(std::vector<double> milliseconds, run(period));
      if (2 * static_cast<int>(milliseconds.size()) >= steps)
        return Median(std::move(milliseconds));
    }
    return absl::DeadlineExceededError(absl::StrCat("steps take longer than ", kLongest / 1'000'000,
                                                    " s, or workers are not ready together"));
  };
}

RunReleased PeerSteps(std::string program, int workers, int64_t mebibytes, int steps) {
  return [=](int64_t release_every) {
    return ReadMilliseconds({program, absl::StrCat(workers), absl::StrCat(mebibytes),
                             absl::StrCat(steps), absl::StrCat(release_every)});
  };
}

absl::StatusOr<std::vector<double>> ReadMilliseconds(const std::vector<std::string>& argv) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::unique_ptr<PeerProcess> peer, PeerProcess::Start(argv));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string answer, peer->Read());
  std::vector<double> milliseconds;
  for (absl::string_view word : absl::StrSplit(answer, ' ', absl::SkipEmpty())) {
    if (!absl::SimpleAtod(word, &milliseconds.emplace_back())) {
      return absl::DataLossError(
          absl::StrCat(argv[0], ": expected milliseconds, got \"", answer, "\""));
    }
  }
  return milliseconds;
}

Measure MedianMilliseconds(std::vector<std::string> argv) {
  return [argv = std::move(argv)]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<double> milliseconds, ReadMilliseconds(argv));
    if (milliseconds.empty()) return absl::DataLossError(absl::StrCat(argv[0], ": no figures"));
    return Median(std::move(milliseconds));
  };
}

}  // namespace lockstep::bench
