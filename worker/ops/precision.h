// Precision says how a device may round the factors of products. It concerns convolutions, dense
// layers and recurrent layers.
#pragma once

namespace lockstep::worker {

// Sums are always float32. A device that lacks a precision computes in float32.
enum class Precision {
  kFloat32,   // not at all
  kTf32,      // to 10 bits, as tensor cores of a GPU do
  kBfloat16,  // to 7 bits; values between layers are stored so; other products as kTf32
};

}  // namespace lockstep::worker
