// How a credential travels: the metadata of HTTP's bearer tokens.
#pragma once

namespace lockstep::rpc {

inline constexpr char kAuthorization[] = "authorization";
inline constexpr char kBearer[] = "Bearer ";

}  // namespace lockstep::rpc
