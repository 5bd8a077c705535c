#include "cortado/net/seal.h"

#include "cortado/base/file.h"
#include "cortado/net/hdf5_file.h"
#include "cortado/net/solver_state.h"
#include "cortado/net/text_format.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

const std::string refusal = "f is damaged: its checksum does not fit; copy it again, or take another";

std::string complaint(const std::string& content) {
  return error_of([&] { check_seal(content, "f"); });
}

caffe::SolverState small_state() {
  caffe::SolverState state;
  state.set_iter(7);
  state.set_learned_net("a.caffemodel");
  caffe::BlobProto& blob = *state.add_history();
  blob.mutable_shape()->add_dim(3);
  for (float value : {1.f, 2.f, 3.f}) blob.add_data(value);
  return state;
}

// Any bit of any byte, and every length but that of the message alone.
void expect_every_fault_found(const std::string& sealed) {
  EXPECT_EQ(complaint(sealed), "");
  for (size_t at = 0; at < sealed.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = sealed;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      EXPECT_EQ(complaint(flipped), refusal) << at << " bit " << bit;
    }
  }
}

TEST(Seal, AMessageShowsEveryFlippedBitAndEveryLostByte) {
  const std::string sealed = sealed_message(small_state().SerializeAsString());
  expect_every_fault_found(sealed);
  for (size_t size = 12; size < sealed.size(); ++size)
    EXPECT_EQ(complaint(sealed.substr(0, size)), refusal) << size;
}

TEST(Seal, AnHdf5FileShowsEveryFlippedBit) {
  expect_every_fault_found(sealed_hdf5("\x89HDF\r\n\x1a\n and what follows"));
}

// Fields that the message lacks are passed over, as Caffe does.
TEST(Seal, AMessageIsReadByWhoDoesNotKnowIt) {
  caffe::SolverState read;
  ASSERT_TRUE(read.ParseFromString(sealed_message(small_state().SerializeAsString())));
  EXPECT_EQ(read.iter(), 7);
  read.DiscardUnknownFields();
  EXPECT_EQ(read.SerializeAsString(), small_state().SerializeAsString());
}

TEST(Seal, FilesWithoutOneAreCaffesOwn) {
  ScratchFolder folder;
  write_file_atomically(folder.file("s"), small_state().SerializeAsString());
  const SolverStateFile state = read_solver_state(folder.file("s"));
  EXPECT_EQ(state.iteration, 7);
  EXPECT_EQ(state.solver, "");
  EXPECT_EQ(complaint(""), "");
  EXPECT_EQ(complaint("\x89HDF\r\n\x1a\n"), "");
}

TEST(Seal, AnHdf5FileIsReadWithItAndWithout) {
  ScratchFolder folder;
  write_solver_state_hdf5(folder.file("sealed"), {.iteration = 9, .learned_net = "w", .solver = "Adam"});
  std::string bytes = read_file(folder.file("sealed"));
  ASSERT_TRUE(is_hdf5(bytes));
  write_file_atomically(folder.file("bare"), std::string_view(bytes).substr(0, bytes.size() - 24));
  for (const char* name : {"sealed", "bare"}) {
    EXPECT_EQ(read_solver_state(folder.file(name)).iteration, 9);
    EXPECT_EQ(read_solver_state(folder.file(name)).solver, "Adam");
  }
  bytes[3] ^= 1;  // no longer HDF5's signature
  write_file_atomically(folder.file("flipped"), bytes);
  EXPECT_NE(error_of([&] { read_solver_state(folder.file("flipped")); }).find("flipped is damaged"),
            std::string::npos);
}

}  // namespace
}  // namespace cortado
