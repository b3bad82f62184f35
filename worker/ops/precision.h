// How a device may round the factors of products in convolutions, dense and recurrent layers.
#pragma once

namespace lockstep::worker {

// Sums are float32 in all of them. A device that does not have one computes in float32.
enum class Precision {
  kFloat32,   // not at all
  kTf32,      // to 10 bits, as tensor cores of a GPU do
  kBfloat16,  // to 7 bits, and what is between layers is stored so; other products as kTf32
};

}  // namespace lockstep::worker
