#pragma once
// What `couplet explain` found out as data; docs/ledger.md says what each name means.

#include <nlohmann/json_fwd.hpp>

#include "explanation.h"

namespace couplet::cli {

nlohmann::ordered_json to_json(const Engine& engine, const Explanation& explanation);

}  // namespace couplet::cli
