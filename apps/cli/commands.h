#pragma once
// The subcommands, one file each. Each reads its own arguments and returns the exit status; what can't be
// done is thrown.

#include "options.h"

namespace couplet::cli {

int run_command(Arguments arguments);
int chat_command(Arguments arguments);
int explain_command(Arguments arguments);
int tokenize_command(Arguments arguments);
int score_command(Arguments arguments);
int template_command(Arguments arguments);
int inspect_command(Arguments arguments);
int bench_command(Arguments arguments);
int serve_command(Arguments arguments);
int quantize_command(Arguments arguments);
int convert_command(Arguments arguments);
int pull_command(Arguments arguments);
int list_command(Arguments arguments);
int rm_command(Arguments arguments);

}  // namespace couplet::cli
