// A stream of elements that can be read again: what data.transform is composed of.
#pragma once

#include "worker/data/transform/drawn_example.h"

namespace lockstep::worker {

// Reads indices, never data. What the n-th call of Next gives is a function of how the stream was
// made and of the calls of Restart before. Not thread-safe.
class ElementStream {
 public:
  virtual ~ElementStream() = default;

  // Replaces *element by the next one of this iteration. False at the end of the iteration, and
  // from then on; *element is then unspecified. Reuses the memory of *element.
  virtual bool Next(Element* element) = 0;

  // Begins the next iteration.
  virtual void Restart() = 0;
};

}  // namespace lockstep::worker
