#pragma once

#include <string>
#include <string_view>

namespace cortado {

// A seal tells whether a file of Caffe's is as it was written: a checksum of all its bytes (base/digest.h),
// where Caffe does not look (docs/reference/files.md, "Checksums"). Caffe's own files have none.

// A binary message with two unknown fields around it: how long the file is, and the checksum.
constexpr size_t message_seal_bytes = 40;
std::string sealed_message(std::string_view message);
// An HDF5 file with the checksum after its end.
std::string sealed_hdf5(std::string image);

// Throws DamagedFile, naming `path`, when `content` has a seal, or a part of one, that does not fit.
void check_seal(std::string_view content, const std::string& path);

// What that says of a file.
[[noreturn]] void refuse_damaged(const std::string& path);

}  // namespace cortado
