#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cortado {

// The whole content of a file. Throws UserError naming the file and the system's reason.
std::string read_file(const std::string& path);

// Replaces `path` by what write(temporary path) writes: a file beside it that is synced and renamed when
// `write` returns and removed when it throws. A kill or a full disk at any moment leaves the old file or the
// new one, whole. Throws UserError naming `path` and the system's reason.
void write_file_atomically(const std::string& path,
                           const std::function<void(const std::string& temporary)>& write);

// The same with content at hand.
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace cortado
