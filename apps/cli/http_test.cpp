#include "http.h"

#include <gtest/gtest.h>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

TEST(Origin, IsSchemeHostAndPort) {
  for (const char* url : {"https://hub.example/a", "https://hub.example:443", "HTTPS://HUB.EXAMPLE/?b", "https://user:word@hub.example/#c"})
    EXPECT_EQ(origin_of(url), "https://hub.example") << url;
  EXPECT_EQ(origin_of("http://hub.example:8080/x"), "http://hub.example:8080");
  EXPECT_EQ(origin_of("http://[::1]:80/x"), "http://[::1]");
}

TEST(Origin, AnotherHostIsAnother) {
  for (const char* url : {"http://hub.example/", "https://hub.example:444/", "https://hub.example.evil/", "https://hub.example@evil/",
                          "https://evil/https://hub.example", "https://evil#@hub.example/", "https://evil?@hub.example/", "https://sub.hub.example/"})
    EXPECT_NE(origin_of(url), "https://hub.example") << url;
  for (const char* url : {"", "http://", "https://a b/", "gopher-like://x/", "https://hub.example:x/"}) EXPECT_THROW(origin_of(url), Error) << url;
}

TEST(AbsoluteUrl, IsSeenFromItsBase) {
  EXPECT_EQ(absolute_url("https://h/a/b?c", "/d"), "https://h/d");
  EXPECT_EQ(absolute_url("https://h/a/b?c", "d"), "https://h/a/d");
  EXPECT_EQ(absolute_url("https://h/a", "//other/b"), "https://other/b");
  EXPECT_EQ(absolute_url("https://h/a", "http://other:81/b"), "http://other:81/b");
  EXPECT_EQ(absolute_url("https://h/a", "gopher-like://x"), "");
}

}  // namespace
}  // namespace couplet::cli
