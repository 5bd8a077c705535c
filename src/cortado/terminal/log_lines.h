#pragma once

#include <string>
#include <string_view>

namespace cortado {

// Lines that Caffe's tools print, for scripts that read Caffe's logs.
enum class LogFormat {
  plain,  // the text alone
  caffe,  // after the prefix of Caffe's logger (glog): "I1123 18:10:01.123456 12345 solver.cpp:218] "
};

// How this process writes lines from here on; plain until it is called. `name`: "caffe" or "plain"; empty:
// Caffe's lines in files and pipes, plain ones on a terminal.
void set_log_format(const std::string& name);
// False where a terminal shows progress in place of lines.
bool writes_lines(const std::string& name);

// The origin of lines that Caffe does not print.
inline constexpr std::string_view our_line = "cortado.cpp:1";
// Prints a line to standard output, at once. `origin`: the file and line of Caffe 1.0 that prints it.
void log_line(std::string_view origin, std::string_view text);

}  // namespace cortado
