// SameCall checks that our declaration of a function of CUDA's libraries matches the library's.
#pragma once

#include <type_traits>

namespace lockstep::test {

// Handles are pointers for both. Numbers have one size; enumerations are compared as the numbers
// that they are.
template <typename Ours, typename Theirs>
constexpr bool SameType() {
  if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>) {
    return std::is_void_v<Ours> && std::is_void_v<Theirs>;
  } else {
    return std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
  }
}

// Compares pointers to functions. Only their types count.
template <typename OurResult, typename... Ours, typename TheirResult, typename... Theirs>
constexpr bool SameCall(OurResult (*)(Ours...), TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return SameType<OurResult, TheirResult>() && (SameType<Ours, Theirs>() && ...);
  }
  return false;
}

}  // namespace lockstep::test
