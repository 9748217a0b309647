// The tokenizer alone, on one thread, for tokenize_bench.py: each line on standard input is a file of texts, each with a
// NUL at its end; the answer is a JSON line with the seconds of CPU that tokenizing them all took. Usage: tokenizer_worker MODEL

#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "couplet/checkpoint.h"

namespace {

std::vector<std::string> read_texts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> texts;
  for (std::string text; std::getline(file, text, '\0');) texts.push_back(text);
  return texts;
}

double thread_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tokenizer_worker MODEL, then files of texts on standard input\n");
    return 2;
  }
  try {
    const auto checkpoint = couplet::Checkpoint::open(argv[1]);
    for (std::string path; std::getline(std::cin, path);) {
      const std::vector<std::string> texts = read_texts(path);
      std::size_t bytes = 0, tokens = 0;
      const double began = thread_seconds();
      for (const std::string& text : texts) {
        tokens += checkpoint->tokenizer().tokenize(text).size();
        bytes += text.size();
      }
      const double took = thread_seconds() - began;
      std::printf("{\"seconds\": %.9f, \"bytes\": %zu, \"tokens\": %zu}\n", took, bytes, tokens);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tokenizer_worker: %s\n", error.what());
    return 1;
  }
}
