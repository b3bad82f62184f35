#include "common/config/address.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("An address is a host and a port") {
  struct Case {
    const char* text;
    const char* canonical;
  };
  for (const Case& c :
       {Case{"node1:2222", "node1:2222"}, Case{"Node1.Example.ORG:1", "node1.example.org:1"},
        Case{"10.0.0.7:65535", "10.0.0.7:65535"}, Case{"h:0080", "h:80"},
        Case{"job-worker-0.ns.svc:2222", "job-worker-0.ns.svc:2222"},
        Case{"my_service:9", "my_service:9"}, Case{"[::1]:2222", "[::1]:2222"},
        Case{"[2001:DB8:0:0:0:0:0:1]:5", "[2001:db8::1]:5"}}) {
    CAPTURE(c.text);
    const auto address = ParseAddress(c.text);
    REQUIRE(address.ok());
    CHECK(address->ToString() == c.canonical);
    CHECK(ParseAddress(address->ToString())->ToString() == c.canonical);
  }
}

TEST_CASE("What is no address is refused with the reason") {
  struct Case {
    std::string text;
    const char* why;
  };
  for (const Case& c : {Case{"", "none is given"},
                        Case{"node1", "there is no port"},
                        Case{":2222", "no host name"},
                        Case{"node1:", "1 to 65535"},
                        Case{"node1:0", "1 to 65535"},
                        Case{"node1:65536", "1 to 65535"},
                        Case{"node1:+22", "1 to 65535"},
                        Case{"node1: 22", "1 to 65535"},
                        Case{"node1:22 ", "1 to 65535"},
                        Case{"node1:99999999999", "1 to 65535"},
                        Case{"node 1:22", "no host name"},
                        Case{"a..b:22", "no host name"},
                        Case{".a:22", "no host name"},
                        Case{"http://a:22", "nothing like http://"},
                        Case{"::1:2222", "goes in brackets"},
                        Case{"[::1:2222", "no IPv6 address"},
                        Case{"[::g]:2222", "no IPv6 address"},
                        Case{"[]:2222", "no IPv6 address"},
                        Case{"[::1]", "no IPv6 address"},
                        Case{std::string(254, 'a') + ":1", "no host"},
                        Case{std::string("a\0b:22", 6), "no host name"}}) {
    CAPTURE(c.text);
    const auto address = ParseAddress(c.text);
    REQUIRE_FALSE(address.ok());
    CHECK_THAT(std::string(address.status().message()), Contains(c.why) && Contains("Remedy: "));
  }
}

}  // namespace
}  // namespace lockstep
