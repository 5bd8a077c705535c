// Files drawn by the rules of caffe.proto, through what `cortado show` does with a model file.
#include "tests/net/random_prototxt.h"

#include <cstdlib>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "cortado/net/declare_net.h"
#include "cortado/net/from_caffe.h"
#include "cortado/net/read_net.h"

#include "tests/net/net_testing.h"

namespace cortado {
namespace {

using google::protobuf::util::MessageDifferencer;

int environment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}

// What the data of a drawn source layer would have told.
std::vector<Shape> source_shapes(const LayerDeclaration& layer) {
  try {
    return declared_source_shapes(layer);
  } catch (const UserError&) {
    std::vector<Shape> shapes{Shape{2, 3, 8, 8}};
    while (shapes.size() < layer.tops.size()) shapes.push_back(Shape{2});
    return shapes;
  }
}

std::string text_of(const caffe::NetParameter& net) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(net, &text);
  return text;
}

// What reading a file gives: its network and its message, or why it was refused.
struct Reading {
  std::string network, refusal;
  caffe::NetParameter net;
};

Reading read(const std::string& text, Phase phase) {
  Reading reading;
  try {
    NetFile file = parse_net(text, "net.prototxt");
    reading.network = testing::description(load_network(file, net_state(phase), source_shapes).network);
    reading.net = std::move(file.net);
  } catch (const UserError& error) {
    reading.refusal = error.what();
    EXPECT_NE(reading.refusal.find("net.prototxt"), std::string::npos) << reading.refusal;
    EXPECT_EQ(reading.refusal.find('\n'), std::string::npos) << reading.refusal;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "neither a network nor a refusal: " << error.what() << "\n" << text;
    reading.refusal = error.what();
  }
  return reading;
}

// The types of layers that stand in a net of the newest generation.
void note_types(const caffe::NetParameter& net, std::set<std::string>& types) {
  for (const auto& layer : net.layer()) types.insert(layer.type());
}

class RandomFiles : public ::testing::Test {
 protected:
  // Reads, writes and reads again, by a file or in memory; true when it was not refused.
  bool survives(const caffe::NetParameter& drawn, bool by_file = false) {
    ++asked_;
    const std::string text = text_of(drawn);
    bool all = true;
    for (Phase phase : {Phase::train, Phase::test}) {
      const Reading first = read(text, phase);
      all = all && first.refusal.empty();
      if (!first.refusal.empty()) continue;
      note_types(first.net, accepted_);
      const NetFile again =
          by_file ? rewritten(first.net) : parse_net(text_of(without_weights(first.net)), "again");
      EXPECT_TRUE(MessageDifferencer::Equals(without_weights(first.net), again.net)) << text;
      const Reading second = read(text_of(again.net), phase);
      EXPECT_EQ(first.network, second.network) << text << second.refusal;
    }
    return all;
  }

  NetFile rewritten(const caffe::NetParameter& net) const {
    const std::string path = folder_.file("written.prototxt");
    write_net(path, net);
    return read_net(path);
  }

  static caffe::NetParameter without_weights(caffe::NetParameter net) {
    for (auto& layer : *net.mutable_layer()) layer.clear_blobs();
    return net;
  }

  ScratchFolder folder_;
  std::set<std::string> accepted_;
  int asked_ = 0;
};

// All fields of a message and of those within it.
void collect_fields(const google::protobuf::Descriptor& message, std::set<std::string>& fields) {
  for (int i = 0; i < message.field_count(); ++i) {
    const auto& field = *message.field(i);
    if (!fields.insert(field.full_name()).second) continue;
    if (field.message_type()) collect_fields(*field.message_type(), fields);
  }
}

TEST_F(RandomFiles, AreReadWrittenAndReadAgain) {
  const int count = environment("CORTADO_NETS", 5000), first = environment("CORTADO_FIRST_NET", 1);
  std::set<std::string> fields, types;
  int accepted = 0;
  for (int seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("CORTADO_NETS=1 CORTADO_FIRST_NET=" + std::to_string(seed));
    testing::RandomPrototxt random(static_cast<uint32_t>(seed));
    const caffe::NetParameter net =
        random.draw([&](const caffe::NetParameter& part) { return survives(part); });
    accepted += survives(net, seed % 20 == 0);  // a file is synced, which takes its time
    fields.insert(random.fields().begin(), random.fields().end());
    types.insert(random.types().begin(), random.types().end());
  }
  std::printf("%d files, %d of them with layers that were left out then, %d networks\n", count, asked_,
              accepted);
  if (count < 5000 || HasFailure()) return;
  EXPECT_GT(accepted, count / 2);
  std::set<std::string> all;
  for (const auto* message : {caffe::LayerParameter::descriptor(), caffe::V1LayerParameter::descriptor()})
    collect_fields(*message, all);
  for (const std::string& field : all) {
    const bool given_by_hand =
        field.ends_with("LayerParameter.name") || field.ends_with("LayerParameter.type") ||
        field.ends_with("LayerParameter.bottom") || field.ends_with("LayerParameter.top") ||
        field.ends_with("V1LayerParameter.layer");
    EXPECT_TRUE(given_by_hand || fields.contains(field)) << field << " was never drawn";
  }
  for (const std::string& type : testing::caffe_layer_types()) EXPECT_TRUE(types.contains(type)) << type;
  for (std::string_view type : supported_layer_types())
    EXPECT_TRUE(accepted_.contains(std::string(type))) << type << " never stood in a net that was accepted";
}

}  // namespace
}  // namespace cortado
