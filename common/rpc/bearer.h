// The metadata of HTTP's bearer tokens, which carry a credential.
#pragma once

namespace lockstep::rpc {

inline constexpr char kAuthorization[] = "authorization";
inline constexpr char kBearer[] = "Bearer ";

}  // namespace lockstep::rpc
