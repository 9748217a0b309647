#include "network_libraries.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

class Library {
 public:
  Library(const char* file, const char* package) : file_(file), package_(package), handle_(::dlopen(file, RTLD_NOW)) {
    if (handle_ == nullptr) refuse(::dlerror());
  }
  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
    if (function == nullptr) refuse(fmt::format("the one here has no {}", name));
  }

 private:
  [[noreturn]] void refuse(const std::string& got) const {
    throw Error(ErrorKind::not_found,
                fmt::format("[pull] needs {} (Debian: apt-get install {}), got: {}", file_, package_, got));
  }
  const char* file_;
  const char* package_;
  void* handle_;  // stays open
};

Curl open_curl() {
  const Library library("libcurl.so.4", "libcurl4");
  Curl curl{};
  library.find("curl_global_init", curl.global_init);
  library.find("curl_easy_init", curl.easy_init);
  library.find("curl_easy_reset", curl.easy_reset);
  library.find("curl_easy_cleanup", curl.easy_cleanup);
  library.find("curl_easy_setopt", curl.easy_setopt);
  library.find("curl_easy_strerror", curl.easy_strerror);
  library.find("curl_multi_init", curl.multi_init);
  library.find("curl_multi_cleanup", curl.multi_cleanup);
  library.find("curl_multi_add_handle", curl.multi_add_handle);
  library.find("curl_multi_remove_handle", curl.multi_remove_handle);
  library.find("curl_multi_perform", curl.multi_perform);
  library.find("curl_multi_poll", curl.multi_poll);
  library.find("curl_multi_info_read", curl.multi_info_read);
  library.find("curl_slist_append", curl.slist_append);
  library.find("curl_slist_free_all", curl.slist_free_all);
  library.find("curl_url", curl.url);
  library.find("curl_url_set", curl.url_set);
  library.find("curl_url_get", curl.url_get);
  library.find("curl_url_cleanup", curl.url_cleanup);
  library.find("curl_free", curl.free);
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    throw Error(ErrorKind::resource, "[pull] libcurl.so.4: it can't be started");
  return curl;
}

Crypto open_crypto() {
  const Library library("libcrypto.so.3", "libssl3");
  Crypto crypto{};
  library.find("EVP_MD_CTX_new", crypto.context_new);
  library.find("EVP_MD_CTX_free", crypto.context_free);
  library.find("EVP_sha1", crypto.sha1);
  library.find("EVP_sha256", crypto.sha256);
  library.find("EVP_DigestInit_ex", crypto.digest_init);
  library.find("EVP_DigestUpdate", crypto.digest_update);
  library.find("EVP_DigestFinal_ex", crypto.digest_final);
  return crypto;
}

}  // namespace

const Curl& curl() {
  static const Curl functions = open_curl();
  return functions;
}

const Crypto& crypto() {
  static const Crypto functions = open_crypto();
  return functions;
}

}  // namespace couplet::cli
