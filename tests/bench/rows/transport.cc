// Tensors between a worker and a ps through sockets, beside as many bytes through a bare TCP
// connection.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "tests/bench/built.h"
#include "tests/bench/contest.h"
#include "tests/bench/released.h"
#include "tests/bench/rows/rows.h"

namespace lockstep::bench {
namespace {

constexpr int kTransportMebibytes = 64;
constexpr int kTransportRounds = 10;
constexpr double kTransportTarget = 0.8;

enum class Direction { kThere, kBoth };

// Of a program that prints milliseconds there, back, there, back, ...: the median rate.
Measure TransportRate(const std::string& program, Direction direction) {
  return [=]() -> absl::StatusOr<double> {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<double> milliseconds,
        ReadMilliseconds({BuiltProgram(program), absl::StrCat(kTransportMebibytes),
                          absl::StrCat(kTransportRounds)}));
    std::vector<double> rates;
    for (size_t i = 0; i + 1 < milliseconds.size(); i += 2) {
      const double there = milliseconds[i];
      const double back = milliseconds[i + 1];
      const double megabytes = kTransportMebibytes * 1.048576;
      rates.push_back(direction == Direction::kThere ? megabytes / there
                                                     : 2 * megabytes / (there + back));
    }
    if (rates.empty()) return absl::DataLossError(absl::StrCat(program, ": no round was run"));
    return Median(std::move(rates));
  };
}

Contest TransportContest(const BenchOptions& options) {
  constexpr char kOurs[] = "tests/bench/transport/grpc_transport";
  constexpr char kTheirs[] = "tests/bench/peers/tcp_stream";
  Contest contest;
  contest.unit = "GB/s";
  contest.higher_is_better = true;
  contest.note = absl::StrFormat("%d MiB in 16 variables, 1 worker, 1 ps; %s", kTransportMebibytes,
                                 options.network);
  contest.sides = {{"push", "", TransportRate(kOurs, Direction::kThere)},
                   {"pushpull", "", TransportRate(kOurs, Direction::kBoth)},
                   {"tcp", "a bare TCP connection", TransportRate(kTheirs, Direction::kThere)},
                   {"tcp_both", "a bare TCP connection, there and back",
                    TransportRate(kTheirs, Direction::kBoth)}};
  contest.comparisons = {{"grpc_push/tcp", "push", "tcp", kTransportTarget},
                         {"grpc_pushpull/tcp", "pushpull", "tcp_both", kTransportTarget}};
  return contest;
}

}  // namespace

RowGroup TransportRows() { return AsGroup(&TransportContest); }

}  // namespace lockstep::bench
