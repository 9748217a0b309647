#pragma once
// A conversation -> the prompt's token ids, through the checkpoint's chat template. The template's control
// tokens are read as such; text in a message that spells one stays text, so no message can forge the end of a
// turn.

#include <string_view>
#include <vector>

#include "couplet/checkpoint.h"

namespace couplet {

// `conversation` as ChatTemplate::render() takes it. Where the tokenizer adds BOS there is exactly one,
// whether or not the template writes it. Throws Error{template_failed} as render() does and where the
// checkpoint has no template.
std::vector<TokenId> chat_prompt(const Checkpoint& checkpoint, std::string_view conversation);
// The same with another template than the checkpoint's.
std::vector<TokenId> chat_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 std::string_view conversation);

}  // namespace couplet
