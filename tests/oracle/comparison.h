// Comparison records where a replay's answers differ from TensorFlow's, and how much of the
// tolerance the others need.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/tensor/dtype.h"

namespace lockstep::oracle {

struct Difference {
  int entry;         // of the log, from 0; -1 where there is none
  std::string what;  // "variable[3]"
  std::string expected;
  std::string got;
};

class Comparison {
 public:
  // Later comparisons belong to this entry of the log.
  void Enter(int entry) { entry_ = entry; }

  // Steps, counts, indices, codes: equal.
  void Equal(const std::string& what, const nlohmann::json& expected, const nlohmann::json& got);
  // The elements of one tensor: within 1e-6 of its largest expected magnitude in float32, 1e-12 in
  // float64, equal in float16.
  void Near(const std::string& what, DType dtype, const std::vector<double>& expected,
            const std::vector<double>& got);
  // Values that we compute in float32 and TensorFlow in float64, forward and backward: within 5e-6
  // of the largest magnitude so far under this name. A value close to 0 keeps the rounding errors
  // of when it was larger, and a mean those of its terms. Of 700 scripts the worst needed 1.2e-6.
  void NearSoFar(const std::string& what, const std::vector<double>& expected,
                 const std::vector<double>& got);
  // The elements of one tensor: equal.
  void Same(const std::string& what, const std::vector<double>& expected,
            const std::vector<double>& got);

  // The farthest of each tensor that is beyond its tolerance, and each number that is not equal.
  const std::vector<Difference>& differences() const { return differences_; }
  // Of all tensors: the largest difference as a share of its tolerance.
  double worst_share() const { return worst_share_; }

 private:
  void Within(double tolerance, const std::string& what, const std::vector<double>& expected,
              const std::vector<double>& got);

  int entry_ = -1;
  std::map<std::string, double> largest_;  // by name, of NearSoFar
  std::vector<Difference> differences_;
  double worst_share_ = 0;
};

}  // namespace lockstep::oracle
