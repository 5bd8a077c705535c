#include "cortado/train/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  std::string path_ = ::testing::TempDir() + "cortado_safetensors_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors";
  void TearDown() override { std::filesystem::remove(path_); }

  // A file of the given header and so many bytes of data.
  void write_raw(const std::string& header, size_t data) {
    std::ofstream stream(path_, std::ios::binary);
    uint64_t size = header.size();
    stream.write(reinterpret_cast<const char*>(&size), sizeof size);
    stream << header << std::string(data, '\0');
  }

  std::string refusal() {
    try {
      read_safetensors(path_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(Safetensors, RoundTrips) {
  SafetensorsFile file;
  file.metadata = {{"version", "1"}, {"quoted", "a \"b\" \n"}};
  file.tensors.push_back({"conv1/weight", {2, 3}, {1, 2, 3, 4, 5, -0.25f}});
  file.tensors.push_back({"scalar", {}, {7}});
  file.tensors.push_back({"empty", {0, 4}, {}});
  write_safetensors(path_, file);
  SafetensorsFile read = read_safetensors(path_);
  EXPECT_EQ(read_safetensors_metadata(path_), read.metadata);
  EXPECT_EQ(read.metadata.erase(SafetensorsFile::checksum_key), 1u);
  EXPECT_EQ(read, file);
  ASSERT_NE(file.find("scalar"), nullptr);
  EXPECT_EQ(file.find("scalar")->values[0], 7);
  EXPECT_EQ(file.find("none"), nullptr);
}

// The bytes written down by hand from the format's description.
TEST_F(Safetensors, ReadsAFileMadeByHand) {
  write_raw(
      R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})",
      0);
  std::ofstream stream(path_, std::ios::binary | std::ios::app);
  for (float value : {1.5f, 2.5f, 3.5f}) stream.write(reinterpret_cast<const char*>(&value), 4);
  stream.close();
  SafetensorsFile file = read_safetensors(path_);
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.find("a")->values, (std::vector<float>{1.5f, 2.5f}));
  EXPECT_EQ(file.find("b")->values, (std::vector<float>{3.5f}));
}

TEST_F(Safetensors, RefusesUnsoundHeaders) {
  struct Case {
    std::string header;
    size_t data;
    std::string fault;
  };
  const Case cases[] = {
      {"[1,2]", 0, "no JSON object"},
      {"{\"a\"", 0, "no JSON object"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "'a' stands twice"},
      {R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", 8, "not F32"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit the shape"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "leaves a hole"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "truncated or has more"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 2, "outside the file"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "no count"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 4,
       "larger than the file"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "needs dtype, shape and data_offsets"},
      {R"({"__metadata__":{"a":1}})", 0, "is no text"},
  };
  for (const Case& c : cases) {
    write_raw(c.header, c.data);
    EXPECT_NE(refusal().find(c.fault), std::string::npos) << c.header << ": " << refusal();
  }
}

TEST_F(Safetensors, RefusesTruncatedFilesAtEveryLength) {
  SafetensorsFile file;
  file.tensors.push_back({"a", {3}, {1, 2, 3}});
  write_safetensors(path_, file);
  for (auto size = std::filesystem::file_size(path_); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    EXPECT_NE(refusal(), "") << size;
  }
}

TEST_F(Safetensors, NamesAMissingFile) {
  EXPECT_NE(refusal().find(path_ + ": cannot open"), std::string::npos);
}

}  // namespace
}  // namespace cortado
