#pragma once
// The JSON lines that score, tokenize and template read: one object a line, hostile until checked here. A
// line that is not what its command takes throws Error{format} that names the place in it; nothing is looked
// up with an unchecked id.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/error.h"
#include "couplet/tokenizer.h"

namespace couplet::cli {

struct ScoreLine {
  std::optional<std::string> text;         // else ids
  std::vector<TokenId> ids;                // each in [0, vocab_size)
  std::vector<std::vector<TokenId>> want;  // ids of interest, a list a position
  bool has_want = false;
};
// {"ids": [...]} or {"text": "..."}, optional "want": [[...], ...].
ScoreLine parse_score_line(std::string_view line, int vocab_size);

std::string parse_text_line(std::string_view line);                          // {"text": "..."}
std::vector<TokenId> parse_ids_line(std::string_view line, int vocab_size);  // {"ids": [...]}

// {"messages": [...], "tools": [...]?, "documents": [...]?, "add_generation_prompt": bool?,
// "continue_final_message": bool or string?, "chat_template_kwargs": {...}?} as what ChatTemplate renders, the last
// one's keys beside the others. JSON that is no conversation throws Error{template_failed}: it costs its line alone.
nlohmann::ordered_json parse_conversation_line(std::string_view line);

// The text itself where it is JSON, else the JSON string that says it.
std::string json_or_text(std::string_view text);

// The lines of a file or of standard input ("-"), one at a time, so that a large file needs no memory. Blank
// lines are skipped. Throws Error{io}, and Error{format} for a line beyond kMaxLineBytes.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next(std::string& line);           // false: no more
  int number() const { return number_; }  // of the line last given, from 1

  static constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

 private:
  bool fill();

  std::string path_;
  int file_;
  std::string buffer_;
  std::size_t begin_ = 0;
  bool ended_ = false;
  int number_ = 0;
};

[[noreturn]] void rethrow_at_line(std::string_view command, int number, const Error& error);

// Runs `parse`; an Error it throws then says which line it was: "[score] line 3: ...".
template <typename Parse>
auto at_line(std::string_view command, int number, Parse parse) {
  try {
    return parse();
  } catch (const Error& error) {
    rethrow_at_line(command, number, error);
  }
}

}  // namespace couplet::cli
