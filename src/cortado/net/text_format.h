#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <string>
#include <string_view>

namespace cortado {

// Protobuf messages in files. Nothing is ever logged; every error is a UserError.

// The places of the fields in a parsed text.
using TextLocations = google::protobuf::TextFormat::ParseInfoTree;

// Reads a message from text. Errors read "FILE:LINE:COLUMN: what (did you mean ...)". `file` is for messages
// only in parse_text. `locations` may be null. Numbers that are infinite or not a number are refused.
void parse_text(std::string_view text, const std::string& file, google::protobuf::Message& message,
                TextLocations* locations = nullptr);
void read_text(const std::string& path, google::protobuf::Message& message,
               TextLocations* locations = nullptr);

// 1-based line of a field (of its element `index`; -1 for a field that is not repeated); 0 when unknown.
int line_of(const TextLocations& locations, const google::protobuf::Message& message, const char* field,
            int index);

void write_text(const std::string& path, const google::protobuf::Message& message);

// Binary messages of up to 2 GiB, protobuf's own limit, written with a seal (net/seal.h). Throws DamagedFile
// when a file is truncated or its seal does not fit.
void parse_binary(std::string_view bytes, const std::string& file, google::protobuf::Message& message);
void read_binary(const std::string& path, google::protobuf::Message& message);
void write_binary(const std::string& path, const google::protobuf::Message& message);

}  // namespace cortado
