#include "cortado/net/text_format.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/nearest_name.h"
#include "cortado/net/seal.h"

namespace cortado {
namespace {

namespace pb = google::protobuf;

// Errors are thrown here, not printed.
void silence_protobuf() {
  static std::once_flag once;
  std::call_once(once, [] { pb::SetLogHandler(nullptr); });
}

// The text between the first `begin` and the `end` that follows it.
std::optional<std::string> between(const std::string& text, std::string_view begin, std::string_view end) {
  size_t first = text.find(begin);
  if (first == std::string::npos) return std::nullopt;
  first += begin.size();
  size_t last = text.find(end, first);
  if (last == std::string::npos) return std::nullopt;
  return text.substr(first, last - first);
}

// Rewrites protobuf's message about an unknown field in the words of the file, with the nearest field.
std::string explain_unknown_field(const std::string& message) {
  auto type = between(message, "Message type \"", "\" has no field named");
  auto field = between(message, "has no field named \"", "\"");
  if (!type || !field) return message;
  const pb::Descriptor* descriptor = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(*type);
  constexpr size_t longest_name = 100;
  if (!descriptor || field->size() > longest_name) return message;
  std::vector<std::string_view> fields;
  for (int i = 0; i < descriptor->field_count(); ++i) fields.push_back(descriptor->field(i)->name());
  return fmt::format("{} has no field '{}'{}", descriptor->name(), *field, did_you_mean(*field, fields));
}

// Keeps the first error; later ones mostly follow from it.
class FirstError : public pb::io::ErrorCollector {
 public:
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = line;
    column_ = column;
    message_ = explain_unknown_field(message);
    while (!message_.empty() && message_.back() == '.') message_.pop_back();
  }
  void AddWarning(int, pb::io::ColumnNumber, const std::string&) override {}

  std::string text(const std::string& file) const {
    if (!found_) return fmt::format("{}: the text cannot be parsed", file);
    if (line_ < 0) return fmt::format("{}: {}", file, message_);
    return fmt::format("{}:{}:{}: {}", file, line_ + 1, column_ + 1, message_);
  }

 private:
  bool found_ = false;
  int line_ = -1, column_ = 0;
  std::string message_;
};

std::string kind_of(const pb::Message& message) { return message.GetDescriptor()->name(); }

void check_size(const std::string& path, size_t bytes) {
  if (bytes > static_cast<size_t>(std::numeric_limits<int>::max())) {
    throw UserError(
        fmt::format("{}: {} bytes are more than a protobuf message can have (2 GiB); use HDF5", path, bytes));
  }
}

// A message takes hundreds of bytes of memory, and as little as two of a file.
constexpr int64_t most_messages = 200'000;

void check_messages(const std::string& path, int64_t messages) {
  if (messages > most_messages)
    throw UserError(
        fmt::format("{}: has {} messages; more than {} are no net's", path, messages, most_messages));
}

// Messages at all levels of a message of that kind: strings at the outermost level count, too.
int64_t messages_in(pb::io::CodedInputStream& stream, const pb::Descriptor& kind, int level = 0) {
  using Wire = pb::internal::WireFormatLite;
  constexpr int most_levels = 100;
  int64_t messages = 0;
  while (const uint32_t tag = stream.ReadTag()) {
    const bool has_length = Wire::GetTagWireType(tag) == Wire::WIRETYPE_LENGTH_DELIMITED;
    const pb::FieldDescriptor* field = kind.FindFieldByNumber(Wire::GetTagFieldNumber(tag));
    const bool is_message = field && field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    messages += has_length && (is_message || level == 0);
    if (!has_length || !is_message || level == most_levels) {
      if (!Wire::SkipField(&stream, tag)) break;  // what parses the message says so
      continue;
    }
    uint32_t size = 0;
    if (!stream.ReadVarint32(&size) || size > std::numeric_limits<int>::max()) break;
    const auto before = stream.PushLimit(static_cast<int>(size));
    messages += messages_in(stream, *field->message_type(), level + 1);
    const bool skipped = stream.Skip(std::max(0, stream.BytesUntilLimit()));
    stream.PopLimit(before);
    if (!skipped) break;
  }
  return messages;
}

int64_t messages_in(std::string_view bytes, const pb::Message& message) {
  pb::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                  static_cast<int>(bytes.size()));
  return messages_in(stream, *message.GetDescriptor());
}

// Element `index` (-1: not repeated) of a field of floating-point numbers; 0 of any other.
double number_of(const pb::Message& message, const pb::FieldDescriptor& field, int index) {
  const pb::Reflection& access = *message.GetReflection();
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_FLOAT)
    return index < 0 ? access.GetFloat(message, &field) : access.GetRepeatedFloat(message, &field, index);
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE)
    return index < 0 ? access.GetDouble(message, &field) : access.GetRepeatedDouble(message, &field, index);
  return 0;
}

// Throws UserError when a number of the message, or of one within, is infinite or not a number.
void check_finite(const pb::Message& message, const TextLocations* locations, const std::string& file) {
  const pb::Reflection& access = *message.GetReflection();
  std::vector<const pb::FieldDescriptor*> fields;
  access.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const bool repeated = field->is_repeated();
    for (int i = 0; i < (repeated ? access.FieldSize(message, field) : 1); ++i) {
      const int index = repeated ? i : -1;
      if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) {
        check_finite(
            repeated ? access.GetRepeatedMessage(message, field, i) : access.GetMessage(message, field),
            locations ? locations->GetTreeForNested(field, index) : nullptr, file);
        continue;
      }
      const double number = number_of(message, *field, index);
      if (std::isfinite(number)) continue;
      const int line = locations ? locations->GetLocation(field, index).line + 1 : 0;
      throw UserError(fmt::format("{}{}: {} is {}; give a finite number of 32 bits", file,
                                  line > 0 ? fmt::format(":{}", line) : "", field->name(), number));
    }
  }
}

}  // namespace

void parse_text(std::string_view text, const std::string& file, pb::Message& message,
                TextLocations* locations) {
  silence_protobuf();
  check_size(file, text.size());
  check_messages(file, std::ranges::count_if(text, [](char c) { return c == '{' || c == '<'; }));
  FirstError error;
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.SetRecursionLimit(100);
  TextLocations own;
  if (!locations) locations = &own;
  parser.WriteLocationsTo(locations);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, &message)) throw UserError(error.text(file));
  check_finite(message, locations, file);
}

void read_text(const std::string& path, pb::Message& message, TextLocations* locations) {
  parse_text(read_file(path), path, message, locations);
}

int line_of(const TextLocations& locations, const pb::Message& message, const char* field, int index) {
  const pb::FieldDescriptor* descriptor = message.GetDescriptor()->FindFieldByName(field);
  ensure(descriptor != nullptr, "line_of names a field that the message does not have");
  return locations.GetLocation(descriptor, index).line + 1;
}

void write_text(const std::string& path, const pb::Message& message) {
  silence_protobuf();
  std::string text;
  ensure(pb::TextFormat::PrintToString(message, &text), "a message cannot be printed");
  write_file_atomically(path, text);
}

void parse_binary(std::string_view bytes, const std::string& file, pb::Message& message) {
  silence_protobuf();
  check_size(file, bytes.size());
  check_seal(bytes, file);
  check_messages(file, messages_in(bytes, message));
  pb::io::CodedInputStream stream(reinterpret_cast<const uint8_t*>(bytes.data()),
                                  static_cast<int>(bytes.size()));
  stream.SetTotalBytesLimit(std::numeric_limits<int>::max());
  if (!message.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
    throw DamagedFile(fmt::format("{}: not a whole binary {}: the file is truncated or of another kind", file,
                                  kind_of(message)));
  }
}

void read_binary(const std::string& path, pb::Message& message) {
  parse_binary(read_file(path), path, message);
}

void write_binary(const std::string& path, const pb::Message& message) {
  silence_protobuf();
  check_size(path, message.ByteSizeLong() + message_seal_bytes);
  std::string bytes;
  ensure(message.SerializeToString(&bytes), "a message cannot be serialized");
  write_file_atomically(path, sealed_message(bytes));
}

}  // namespace cortado
