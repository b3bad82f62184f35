// PlainTransform computes the result of a list of transformations without a shuffle as lists. It is
// the reference for the streams.
#pragma once

#include <cstdint>
#include <vector>

#include "common/dataset/transform_step.h"

namespace lockstep::worker::test {

using Numbers = std::vector<int64_t>;

// At most `most` elements. An endless repeat is written out up to more than any test reads.
inline std::vector<Numbers> PlainTransform(const std::vector<TransformStep>& steps,
                                           int64_t examples, size_t most) {
  constexpr size_t kEnough = 50000;
  std::vector<Numbers> elements;
  for (int64_t i = 0; i < examples; ++i) elements.push_back({i});
  for (const TransformStep& step : steps) {
    std::vector<Numbers> out;
    switch (step.kind) {
      case TransformStep::Kind::kShard:
        for (size_t i = step.index; i < elements.size(); i += step.size) out.push_back(elements[i]);
        break;
      case TransformStep::Kind::kRepeat:
        for (int64_t i = 0;
             step.size == 0 ? !elements.empty() && out.size() < kEnough : i < step.size; ++i) {
          out.insert(out.end(), elements.begin(), elements.end());
        }
        break;
      case TransformStep::Kind::kBatch:
        for (size_t i = 0; i < elements.size(); i += step.size) {
          Numbers batch;
          for (size_t k = i; k < elements.size() && k < i + step.size; ++k) {
            batch.insert(batch.end(), elements[k].begin(), elements[k].end());
          }
          const bool is_whole = static_cast<int64_t>(batch.size()) == step.size;
          if (is_whole || !step.drop_remainder) out.push_back(batch);
        }
        break;
      case TransformStep::Kind::kShuffle:
      case TransformStep::Kind::kShift:
        out = elements;
        break;
    }
    elements = out;
  }
  if (elements.size() > most) elements.resize(most);
  return elements;
}

}  // namespace lockstep::worker::test
