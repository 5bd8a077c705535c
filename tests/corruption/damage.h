#pragma once

#include <functional>
#include <ostream>
#include <random>
#include <string>

namespace cortado::testing {

// A kind of file that Cortado reads.
struct FileKind {
  std::string name;
  // Makes a sound file, perhaps with others beside it, in an empty folder; returns its path.
  std::function<std::string(const std::string& folder)> make;
  // Reads it as a command would and tells what it found, as text. Throws UserError.
  std::function<std::string(const std::string& path)> read;
  // True where damage is always noticed: what is accepted tells the same as the sound file. Without a
  // checksum a flipped bit is another number, which no reader can know.
  bool checked = false;
};

inline void PrintTo(const FileKind& kind, std::ostream* out) { *out << kind.name; }

// One to three random damages: a flipped bit, a cut end, two stretches swapped, a stretch of zeros.
void damage(std::string& bytes, std::mt19937& random);

// What became of damaged files.
struct Verdicts {
  int equal = 0, other = 0, refused = 0;
  std::string faults;  // a line a fault: signals, hangs, memory, other errors than UserError, messages of
                       // several lines
};

// Damages a sound file `cases` times, each from seed `first` on, and reads it, in processes of its own: at
// most 10 seconds and 1 GiB a case.
Verdicts read_damaged(const FileKind& kind, int cases, int first);

}  // namespace cortado::testing
