#pragma once
// Where text goes and how it looks there: standard output (the answer) and standard error (all about it),
// checked writes, the width of a line, and text made safe to show. Colour only on a terminal and never with
// NO_COLOR.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace couplet::cli {

// The reader of standard output has left (`| head`): there is nothing more to do. Only main catches it.
struct ReaderLeft {};

// Waits until a file that another program made non-blocking can be read (POLLIN) or written (POLLOUT) again.
void wait_until_ready(int fd, short events);

// The answer. Buffered until flush(), which throws ReaderLeft, or Error{io} where the text can't be written.
void print(std::string_view text);
void flush();
bool output_is_terminal();

// About the answer. Does nothing after set_quiet(); an error is shown anyway. `text` has no newline at its
// end.
void set_quiet();
void note(std::string_view text);
void show_error(std::string_view text);
// A line that the next one overwrites, empty at last; only where standard error is a terminal.
void show_progress(std::string_view text);

bool use_color();  // on standard output
int line_width();  // columns: of the terminal, else 80; at least 40
// Dim text where colour is used, else unchanged.
std::string dim(std::string_view text);
std::string bold(std::string_view text);

// One line without control characters: newline as \n, other controls and bytes that are no UTF-8 as \x1b.
std::string visible(std::string_view text);
// Text for a terminal: as it is, but control characters beside newline and tab become pictures of themselves,
// and what has none of these is as in visible().
std::string harmless(std::string_view text);

// Bytes of the well-formed UTF-8 character at the beginning of `text`; 0: there is none.
std::size_t utf8_length(std::string_view text);
int display_width(std::string_view text);  // columns that visible text takes
// Exactly `width` columns: padded with spaces, or cut with "…" at its end (or its beginning).
std::string fit(std::string_view text, int width);
std::string fit_end(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

std::string bar(double share, int width);   // '#' signs
std::string grouped(std::uint64_t number);  // 49,152
std::string amount(std::uint64_t bytes);    // 98 MB
std::string percent(double share);          // "31.2 %", "<0.1 %"
std::string milliseconds(double ms);        // "14.6 ms", "1.9 s"

}  // namespace couplet::cli
