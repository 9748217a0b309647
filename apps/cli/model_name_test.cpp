#include "model_name.h"

#include <gtest/gtest.h>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

HubName hub(std::string_view text) {
  const auto name = parse_remote_name(text);
  return name && std::holds_alternative<HubName>(*name) ? std::get<HubName>(*name) : HubName{"no", "hub's", "", ""};
}

TEST(ModelName, PartsOfAHubsName) {
  const HubName name = hub("hf.co/Some-Owner/a.b_c@v1.0:sub/file-Q4_K_M.gguf");
  EXPECT_EQ(name.repository(), "Some-Owner/a.b_c");
  EXPECT_EQ(name.revision, "v1.0");
  EXPECT_EQ(name.wanted, "sub/file-Q4_K_M.gguf");
  EXPECT_EQ(name.folder(), "hf.co/Some-Owner/a.b_c@v1.0");
  EXPECT_EQ(name.text(), "hf.co/Some-Owner/a.b_c@v1.0:sub/file-Q4_K_M.gguf");
}

TEST(ModelName, AllWaysToWriteOneAreOne) {
  for (const char* text : {"hf.co/o/n", "hf.co/o/n/", "hf.co/o/n@main", "huggingface.co/o/n", "hf://o/n", "https://hf.co/o/n",
                           "https://huggingface.co/o/n/", "https://huggingface.co/o/n/tree/main", "https://huggingface.co/o/n?library=x"})
    EXPECT_EQ(hub(text).text(), "hf.co/o/n") << text;
  for (const char* text : {"hf.co/o/n:d/f.gguf", "https://huggingface.co/o/n/blob/main/d/f.gguf",
                           "https://huggingface.co/o/n/resolve/main/d/f.gguf?download=true"})
    EXPECT_EQ(hub(text).text(), "hf.co/o/n:d/f.gguf") << text;
}

TEST(ModelName, UrlsKeepTheirPlace) {
  const auto name = parse_remote_name("https://host:8443/a/b%20c.gguf?token=x#top");
  ASSERT_TRUE(name && std::holds_alternative<UrlName>(*name));
  const UrlName& url = std::get<UrlName>(*name);
  EXPECT_EQ(url.url, "https://host:8443/a/b%20c.gguf?token=x");
  EXPECT_EQ(url.name, "https://host:8443/a/b%20c.gguf");
  EXPECT_EQ(url.place, "https/host:8443/a/b%20c.gguf");
}

TEST(ModelName, OtherTextsAreNotMeant) {
  for (const char* text : {"", "smollm2", "model.gguf", "./hf.co/o/n", "/tmp/hf.co", "hf.co", "ftp://host/x.gguf"})
    EXPECT_FALSE(parse_remote_name(text)) << text;
}

TEST(ModelName, WhatIsMeantAndWrongIsRefused) {
  for (const char* text : {"hf.co/", "hf.co/o", "hf.co//n", "hf.co/o/", "hf.co/o/n/m", "hf.co/../n", "hf.co/o/..", "hf.co/o/.n", "hf.co/o/n@",
                           "hf.co/o/n@../m", "hf.co/o/n:", "hf.co/o/n:/x", "hf.co/o/n:../x", "hf.co/o/n:a/../x", "hf.co/o/n:x\n", "hf.co/o n/n",
                           "https://huggingface.co/o/n/raw/main/x", "https://huggingface.co/o/n/blob/main", "https://huggingface.co/o/n/tree/main/sub",
                           "http://h", "http://h/", "http://h/x", "http:///x.gguf", "http://../x.gguf", "http://h/./x.gguf", "http://u@h/x.gguf"})
    EXPECT_THROW(hub(text), Error) << text;
}

TEST(SafePath, StaysInItsFolder) {
  for (const char* path : {"a", "a/b.gguf", "a b", "é", "a..b", "a/b.."}) EXPECT_TRUE(is_safe_path(path)) << path;
  const std::string long_piece(201, 'a');
  std::string long_path = "a";
  while (long_path.size() <= 1000) long_path += "/a";
  for (const std::string& path : {std::string(""), std::string("/"), std::string("/a"), std::string("a/"), std::string("a//b"), std::string(".."),
                                  std::string("../a"), std::string("a/../b"), std::string("a/.."), std::string("."), std::string("a/./b"),
                                  std::string(".a"), std::string("a\\b"), std::string("a\0b", 3), std::string("a\x7f"), std::string("\xff"),
                                  std::string("a\u202e"), long_piece, long_path})
    EXPECT_FALSE(is_safe_path(path)) << path;
}

}  // namespace
}  // namespace couplet::cli
