#pragma once
// How far a pull is: a bar on standard error where that is a terminal that may be drawn on, else nothing.

#include <chrono>
#include <cstdint>
#include <string>

namespace couplet::cli {

class Progress {
 public:
  Progress(std::string name, std::uint64_t total_bytes, bool shown);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void had(std::uint64_t bytes);                   // of the total these were there before
  void add(std::uint64_t bytes);                   // these came in now
  void take_back(std::uint64_t bytes);             // these have to come again
  void set_total(std::uint64_t bytes) { total_ = bytes; }
  void say(const std::string& text);  // a line, as note() writes it
  void clear();                       // until it is drawn again
  std::uint64_t received() const { return received_; }

 private:
  void draw();

  using Clock = std::chrono::steady_clock;
  std::string name_;
  std::uint64_t total_, done_ = 0, received_ = 0;
  bool shown_, drawn_ = false;
  Clock::time_point start_ = Clock::now(), last_draw_{};
};

}  // namespace couplet::cli
