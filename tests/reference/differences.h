// Derivatives of a function of doubles, from the function alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace lockstep::reference {

// d f / d x by central differences; `f` reads x wherever it lies.
template <typename Function>
double Derivative(double& x, const Function& f) {
  constexpr double kStep = 1e-5;
  const double centre = x;
  x = centre + kStep;
  const double above = f();
  x = centre - kStep;
  const double below = f();
  x = centre;
  return (above - below) / (2 * kStep);
}

// Up to `count` indices spread over [0, size), first and last included.
inline std::vector<int64_t> SpreadIndices(int64_t size, int64_t count) {
  std::vector<int64_t> indices;
  const int64_t picked = std::min(size, count);
  for (int64_t i = 0; i < picked; ++i) {
    indices.push_back(picked == 1 ? 0 : i * (size - 1) / (picked - 1));
  }
  return indices;
}

}  // namespace lockstep::reference
