#include "cortado/data/window_list.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/base/file.h"

namespace cortado {
namespace {

// The words of a file, each with its line.
class WindowWords {
 public:
  WindowWords(const std::string& path, std::string_view text) : path_(path), text_(text) { skip_blanks(); }

  bool empty() const { return at_ == text_.size(); }
  std::string_view next(std::string_view what) {
    line_of_word_ = line_;
    if (empty()) fail(what, "the end of the file");
    const size_t begin = at_;
    while (at_ < text_.size() && !is_blank(text_[at_])) ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    skip_blanks();
    return word;
  }
  template <typename Number>
  Number number(std::string_view what) {
    const std::string_view word = next(what);
    Number value{};
    const char* const end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data(), end, value);
    if (parsed.ec != std::errc() || parsed.ptr != end) fail(what, fmt::format("\"{}\"", word));
    return value;
  }
  [[noreturn]] void fail(std::string_view what, std::string_view found) const {
    throw UserError(fmt::format("{}:{}: expected {}, found {}", path_, line_of_word_, what, found));
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  void skip_blanks() {
    for (; at_ < text_.size() && is_blank(text_[at_]); ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }

  std::string path_;
  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1, line_of_word_ = 1;
};

void read_window(WindowWords& words, double foreground_threshold, double background_threshold,
                 WindowList& list) {
  ImageWindow window;
  window.image = static_cast<int>(list.images.size()) - 1;
  window.label = words.number<int>("a window's class");
  const auto overlap = words.number<double>("a window's overlap");
  window.x1 = words.number<int>("a window's x1");
  window.y1 = words.number<int>("a window's y1");
  window.x2 = words.number<int>("a window's x2");
  window.y2 = words.number<int>("a window's y2");
  if (overlap >= foreground_threshold) {
    if (window.label <= 0)
      words.fail("the class of a foreground window, 1 or more", std::to_string(window.label));
    list.foreground.push_back(window);
  } else if (overlap < background_threshold) {
    window.label = 0;
    list.background.push_back(window);
  }
}

}  // namespace

WindowList parse_window_list(const std::string& path, std::string_view text, double foreground_threshold,
                             double background_threshold) {
  WindowWords words(path, text);
  WindowList list;
  while (!words.empty()) {
    if (const std::string_view word = words.next("#"); word != "#")
      words.fail("# and the number of an image", fmt::format("\"{}\"", word));
    words.number<int64_t>("the number of an image");
    list.images.emplace_back(words.next("the path of an image"));
    for (const char* what : {"channels", "height", "width"}) words.number<int>(what);
    const auto windows = words.number<int64_t>("the number of an image's windows");
    for (int64_t i = 0; i < windows; ++i)
      read_window(words, foreground_threshold, background_threshold, list);
  }
  if (list.images.empty()) throw UserError(fmt::format("window file {} has no images", path));
  return list;
}

WindowList read_window_list(const std::string& path, double foreground_threshold,
                            double background_threshold) {
  return parse_window_list(path, read_file(path), foreground_threshold, background_threshold);
}

}  // namespace cortado
