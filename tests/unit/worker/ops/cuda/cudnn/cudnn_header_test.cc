// Our declarations of cuDNN's interface against cudnn.h.
#include <cudnn.h>

#include <catch2/catch.hpp>
#include <type_traits>

#include "worker/ops/cuda/cudnn/cudnn_api.h"

namespace lockstep::worker::cuda {
namespace {

#define LOCKSTEP_COMPARE(name, symbol, value) static_assert(name == static_cast<int>(symbol));
LOCKSTEP_CUDNN_CONSTANTS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

static_assert(kCudnnSuccess == CUDNN_STATUS_SUCCESS);

// A number has the same size for both; enumerations are compared as the numbers that they are.
template <typename Ours, typename Theirs>
constexpr bool SameType() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}

template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool SameCall(OurResult (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return SameType<OurResult, TheirResult>() && (SameType<Ours, Theirs>() && ...);
  }
  return false;
}

#define LOCKSTEP_COMPARE(name, result, symbol, parameters)                         \
  static_assert(SameCall(decltype(CudnnFunctions::name){}, decltype(&::symbol){}), \
                #symbol " has other parameters in cudnn.h");
LOCKSTEP_CUDNN_FUNCTIONS(LOCKSTEP_COMPARE)
#undef LOCKSTEP_COMPARE

}  // namespace
}  // namespace lockstep::worker::cuda
