#pragma once
// What `couplet explain` found out as one page for a browser: no script, nothing from elsewhere, right in dark and light and
// on a phone. Whatever comes from a model or a user is escaped.

#include <string>
#include <string_view>

#include "explanation.h"

namespace couplet::cli {

// Writes the whole page under the name at once, or throws Error{io} and leaves what was there.
void write_page(const std::string& path, const Engine& engine, const Explanation& explanation);

std::string page(const Engine& engine, const Explanation& explanation);
// What HTML would read as markup, escaped; the text itself is visible() or harmless() already.
std::string escaped(std::string_view text);

}  // namespace couplet::cli
