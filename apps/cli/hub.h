#pragma once
// The model hub's web API: where it is, who asks, what a repository holds and how a file of it is asked for. What it says
// is hostile: sizes and counts are bounded, names checked, a token goes to the hub alone.

#include <cstdint>
#include <string>
#include <vector>

#include "digest.h"
#include "fetch.h"
#include "http.h"
#include "model_name.h"
#include "retries.h"

namespace couplet::cli {

struct HubFile {
  std::string path;
  std::uint64_t bytes = 0;
  Digest digest;
};

class Hub {
 public:
  // $HF_ENDPOINT, else https://huggingface.co; the token of $HF_TOKEN, else of the file that the hub's own client
  // writes. Throws Error{usage} for an endpoint that is no URL and a token that is none.
  static Hub from_environment();

  // Every file of the repository that could be part of a model. Throws Error that says what to do.
  std::vector<HubFile> files(HttpClient& client, const HubName& repository, Retries retries) const;
  HttpRequest file_request(const HubName& repository, const std::string& path) const;
  // Why an answer to either request is no good.
  [[noreturn]] void refuse(const HttpAnswer& answer, const HubName& repository, const std::string& path) const;
  std::string page(const HubName& repository) const { return endpoint_ + "/" + repository.repository(); }

 private:
  HttpRequest request(const std::string& url) const { return {url, token_, origin_, 0, ""}; }
  // The text of one page; `url` is then the next one's, or empty.
  std::string listing(HttpClient& client, const HubName& repository, std::string& url) const;

  std::string endpoint_, origin_;
  std::string token_, token_source_;
};

}  // namespace couplet::cli
