#include "report/text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tailward::report {
namespace {

// What Unicode asks for in place of bytes that are no text (chapter 3.9).
constexpr std::string_view kReplacement = "\uFFFD";

struct CodePoint {
  char32_t value = 0;
  std::size_t size = 1;
  bool valid = false;
};

// The first code point of a text that is not empty. Overlong forms, surrogates and values beyond
// U+10FFFF are invalid, and an invalid byte is skipped alone (RFC 3629).
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  // 0xc0 and 0xc1 could only begin an overlong form, 0xf5 and above a value beyond U+10FFFF.
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t value = lead & (0xffu >> (size + 1));
  for (std::size_t at = 1; at < size; ++at) {
    if ((byte(at) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(at) & 0x3fu);
  }
  // The least value that needs that many bytes: anything below is overlong.
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (value < kLeast[size] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, size, true};
}

struct Range {
  char32_t first, last;
};

template <std::size_t N>
bool among(const std::array<Range, N>& ranges, char32_t value) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range r) { return value >= r.first && value <= r.last; });
}

// Could move the cursor, start an escape sequence, or show text in another order than it is
// written.
bool is_harmful(char32_t value) {
  // C0 and C1 controls, directional marks, embeddings and overrides, isolates (UAX #9).
  static constexpr std::array<Range, 5> kHarmful{
      {{0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x202a, 0x202e}, {0x2066, 0x2069}}};
  return among(kHarmful, value);
}

// Not the whole of UAX #11: the blocks that occur in host, thread and query names.
int width_of(char32_t value) {
  // Combining marks, zero-width spaces and joiners, variation selectors.
  static constexpr std::array<Range, 6> kNone{{{0x300, 0x36f},
                                               {0x483, 0x489},
                                               {0x591, 0x5bd},
                                               {0x200b, 0x200d},
                                               {0x20d0, 0x20f0},
                                               {0xfe00, 0xfe0f}}};
  // Hangul, CJK and its punctuation, full-width forms, emoji.
  static constexpr std::array<Range, 9> kWide{{{0x1100, 0x115f},
                                               {0x2e80, 0xa4cf},
                                               {0xac00, 0xd7a3},
                                               {0xf900, 0xfaff},
                                               {0xfe30, 0xfe6f},
                                               {0xff00, 0xff60},
                                               {0xffe0, 0xffe6},
                                               {0x1f300, 0x1faff},
                                               {0x20000, 0x3fffd}}};
  if (among(kNone, value)) return 0;
  return among(kWide, value) ? 2 : 1;
}

template <class Visit>
void for_each_code_point(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    visit(point, text.substr(0, point.size));
    text.remove_prefix(point.size);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// Cuts off the start of `word` that fits into `width`: at least one code point, so that it ends.
std::string_view cut(std::string_view& word, int width) {
  std::size_t size = 0;
  int used = 0;
  while (size < word.size()) {
    const CodePoint point = first_code_point(word.substr(size));
    const int more = point.valid ? width_of(point.value) : 1;
    if (size > 0 && used + more > width) break;
    used += more;
    size += point.size;
  }
  const std::string_view head = word.substr(0, size);
  word.remove_prefix(size);
  return head;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_code_point(text, [&](CodePoint point, std::string_view bytes) {
    // A line break inside a cell would break the table; a space keeps the words apart.
    if (point.valid && (point.value == '\n' || point.value == '\t' || point.value == '\r')) {
      out += ' ';
    } else {
      out += point.valid && !is_harmful(point.value) ? bytes : kReplacement;
    }
  });
  return out;
}

int display_width(std::string_view text) {
  int width = 0;
  for_each_code_point(text, [&](CodePoint point, std::string_view) {
    width += point.valid ? width_of(point.value) : 1;
  });
  return width;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines(1);
  int used = 0;
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  // An indent that leaves no room for the longest word is dropped: better flush left than cut.
  if (indent < text.size() && static_cast<int>(indent) + longest_word(text) <= width) {
    lines[0].assign(indent, ' ');
    used = static_cast<int>(indent);
  }
  bool line_start = true;
  for (std::string_view word : words_of(text)) {
    if (!line_start && used + 1 + display_width(word) > width) {
      lines.emplace_back();
      used = 0;
      line_start = true;
    }
    if (!line_start) {
      lines.back() += ' ';
      ++used;
    }
    // A word that is longer than a line is cut, for instance a URL.
    while (used + display_width(word) > width) {
      lines.back() += cut(word, width);
      if (word.empty()) break;
      lines.emplace_back();
    }
    lines.back() += word;
    used += display_width(word);
    line_start = false;
  }
  return lines;
}

int longest_word(std::string_view text) {
  int longest = 0;
  for (std::string_view word : words_of(text)) longest = std::max(longest, display_width(word));
  return longest;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for_each_code_point(text, [&](CodePoint point, std::string_view bytes) {
    if (!point.valid) {
      out += kReplacement;
      return;
    }
    switch (point.value) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '\n':
      case '\t':
        out += bytes;
        break;
      default:
        out += is_harmful(point.value) ? kReplacement : bytes;
    }
  });
  return out;
}

}  // namespace tailward::report
