#pragma once
// The ledger: one sequence's part of one step in JSON, the same in `couplet explain --json` and in traces. docs/ledger.md
// says what each name means.

#include <nlohmann/json_fwd.hpp>

#include "couplet/machine.h"
#include "couplet/stats.h"
#include "couplet/tokenizer.h"

namespace couplet::story {

// `part` is one of `record.sequences`. The shares of the machine's limits are left out where `peaks` are zero.
nlohmann::ordered_json ledger_entry(const StepRecord& record, const SequenceStep& part, const MachinePeaks& peaks,
                                    const Tokenizer& tokenizer);
// The token that a step led to: to_json(tokenizer, choice), and how it came about.
nlohmann::ordered_json choice_json(const Tokenizer& tokenizer, const TokenChoice& choice);
const char* how(const TokenChoice& choice);  // "greedy", "forced" or "drawn"

}  // namespace couplet::story
