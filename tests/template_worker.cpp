// The worker that tests render chat templates in, in place of the command line's `template-worker`.

#include <cstring>

#include "couplet/chat_template.h"

int main(int argc, char** argv) {
  return argc == 2 && std::strcmp(argv[1], "template-worker") == 0 ? couplet::ChatTemplate::worker_main() : 2;
}
