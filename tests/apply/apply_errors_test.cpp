#include <filesystem>
#include <gtest/gtest.h>

#include "tests/apply/trained_shapes.h"

namespace cortado {
namespace {

// Wrong input of every kind: one clear line, exit code 2, nothing written.
class ApplyErrors : public TrainedShapes {
 protected:
  static void expect_refusal(const std::string& arguments, const std::vector<std::string>& parts) {
    const std::string message = refusal(arguments);
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    EXPECT_EQ(folder_->count("out"), 0) << arguments;
    EXPECT_EQ(folder_->count(".partial") + folder_->count(".tmp"), 0) << arguments;
  }
  const std::string classify_ = "classify" + std::string(deployed);
  const std::string plain_ = "classify --model deploy.prototxt --weights weights.caffemodel ";
  const std::string extract_ = "extract" + std::string(deployed);
};

TEST_F(ApplyErrors, Images) {
  std::filesystem::create_directory(folder_->file("empty"));
  folder_->write("text.jpg", "not an image");
  folder_->write("cut.png", folder_->read("pngs/00.png").substr(0, 300));
  folder_->write("missing.txt", "pngs/00.png\npngs/none.png\n");
  expect_refusal(classify_, {"there are no images"});
  expect_refusal(classify_ + "none.jpg", {"none.jpg does not exist"});
  expect_refusal(classify_ + "empty", {"empty holds no *.jpg"});
  expect_refusal(classify_ + "test", {"test is an LMDB", "--source"});
  expect_refusal(classify_ + "text.jpg", {"text.jpg: neither a JPEG nor a PNG", "--skip-corrupt"});
  expect_refusal(classify_ + "pngs/00.png cut.png", {"cut.png: "});
  expect_refusal(classify_ + "--source missing.txt", {"pngs/none.png", "No such file"});
  expect_refusal(classify_ + "--source none", {"none does not exist"});
  expect_refusal(classify_ + "--source test pngs", {"--source test", "pngs", "choose one"});
  expect_refusal(classify_ + "--root pngs/ pngs/00.png", {"--root"});
  expect_refusal(extract_ + "--blobs ip --out out pngs/00.png cut.png", {"cut.png: "});
}

TEST_F(ApplyErrors, NetsAndWeights) {
  const std::string deploy = "--threads 1 --model deploy.prototxt pngs/00.png";
  folder_->write("other.prototxt", R"(layer { name: 'data' type: 'Input' top: 'data'
  input_param { shape { dim: 1 dim: 3 dim: 16 dim: 16 } } }
layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { num_output: 8 kernel_size: 5 } }
layer { name: 'new' type: 'InnerProduct' bottom: 'conv' top: 'new' inner_product_param { num_output: 4 } })");
  expect_refusal("classify " + deploy, {"--weights"});
  expect_refusal("classify " + deploy + " --weights none.caffemodel", {"none.caffemodel", "No such file"});
  expect_refusal("classify --model other.prototxt --weights weights.caffemodel pngs/00.png",
                 {"weights.caffemodel has no weights of layer 'new' of other.prototxt"});
  expect_refusal("classify --model train_val.prototxt --weights weights.caffemodel --blob ip pngs/00.png",
                 {"train_val.prototxt:2: layer 'data' (Data)", "deploy net"});
  expect_refusal("classify --model train_val.prototxt --weights weights.caffemodel pngs/00.png",
                 {"2 outputs, 'accuracy', 'loss'", "--blob"});
  expect_refusal("classify pngs/00.png", {"--model", "words of Caffe's"});
  expect_refusal("classify --weights weights.caffemodel a b c d e", {"--model"});
  expect_refusal("extract --model deploy.prototxt --weights weights.caffemodel --blobs ip --out out",
                 {"layer 'data'", "no end"});
}

TEST_F(ApplyErrors, Options) {
  folder_->write("three.txt", "a\nb\nc\n");
  expect_refusal(classify_ + "pngs --labels three.txt", {"three.txt names 3 classes", "4 scores"});
  expect_refusal(classify_ + "pngs --labels none.txt", {"none.txt", "No such file"});
  expect_refusal(classify_ + "pngs --blob prop", {"no blob 'prop'", "did you mean 'prob'?"});
  expect_refusal(classify_ + "pngs --blob conv", {"'conv' of 16x8x12x12", "extract"});
  expect_refusal(classify_ + "pngs --mean none.binaryproto", {"exclude"});
  expect_refusal(plain_ + "pngs --mean none.binaryproto", {"none.binaryproto"});
  expect_refusal(plain_ + "pngs --mean-value 1,2", {"2 mean values"});
  expect_refusal(plain_ + "pngs --mean-value 1,x,2", {"--mean-value 1,x,2", "'x'"});
  expect_refusal(plain_ + "pngs --mean-value nan", {"'nan' is not a number"});
  expect_refusal(classify_ + "pngs --scale 0", {"--scale"});
  expect_refusal(classify_ + "pngs --scale inf", {"--scale"});
  expect_refusal(classify_ + "pngs --resize 256", {"--resize 256", "256,256"});
  expect_refusal(classify_ + "pngs --resize 8,8", {"8x8", "16x16"});
  expect_refusal(classify_ + "pngs --oversample", {"--resize"});
  expect_refusal(classify_ + "pngs --top 0", {"--top"});
  expect_refusal(classify_ + "pngs --batch -1", {"--batch"});
  expect_refusal(classify_ + "pngs --ranks 2", {"no option --ranks"});
  expect_refusal(extract_ + "pngs --out out", {"--blobs"});
  expect_refusal(extract_ + "pngs --blobs ip", {"--out"});
  expect_refusal(extract_ + "pngs --blobs ip,ip --out out1,out2", {"named twice"});
  expect_refusal(extract_ + "pngs --blobs ip --out out1,out2", {"2 output names for 1 blob"});
  expect_refusal(extract_ + "pngs --blobs up --out out", {"no blob 'up'", "'ip'"});
  expect_refusal(extract_ + "pngs --blobs ip --out out --batches 100", {"there are 50"});
  expect_refusal(extract_ + "pngs --blobs ip --out out --format leveldb", {"leveldb"});
  expect_refusal("extract weights.caffemodel train_val.prototxt ip out 7 leveldb", {"leveldb"});
  expect_refusal("extract weights.caffemodel train_val.prototxt ip out 7 lmdb GPU", {"GPU"});
  expect_refusal("extract weights.caffemodel train_val.prototxt ip out seven lmdb", {"seven"});
}

// What is read stays as it is.
TEST_F(ApplyErrors, OutputsThatAreInputs) {
  const std::string image = folder_->read("pngs/00.png"), labels = folder_->read("test/labels.txt");
  expect_refusal(classify_ + "pngs --json pngs/00.png", {"--json pngs/00.png: this command reads"});
  expect_refusal(classify_ + "pngs --labels test/labels.txt --csv ./test/labels.txt", {"this command reads"});
  expect_refusal(classify_ + "pngs --json deploy.prototxt", {"--json deploy.prototxt: this command reads"});
  expect_refusal(classify_ + "pngs --json x --csv ./x", {"--json names that file, too"});
  expect_refusal(classify_ + "pngs --json none/out.json", {"there is no folder 'none'"});
  expect_refusal(classify_ + "pngs --json pngs", {"is a folder"});
  expect_refusal(
      "extract --model train_val.prototxt --weights weights.caffemodel --blobs ip --out test --force",
      {"test is an input"});
  expect_refusal(extract_ + "--source test --blobs ip --out test --force", {"test is an input"});
  EXPECT_EQ(folder_->read("pngs/00.png"), image);
  EXPECT_EQ(folder_->read("test/labels.txt"), labels);
}

// A file-size limit stands for a full disk.
TEST_F(ApplyErrors, AFullDisk) {
  const std::string arguments =
      "extract --threads 1 --model train_val.prototxt --weights weights.caffemodel --blobs conv --out out "
      "--format ";
  for (const char* format : {"npy", "hdf5"}) {
    const CommandResult result =
        run_cortado(folder_->path(), arguments + format, "ulimit -f 64; trap '' XFSZ;");
    EXPECT_EQ(result.exit_code, 2) << result.output;
    EXPECT_EQ(std::ranges::count(result.output, '\n'), 1) << result.output;
    EXPECT_NE(result.output.find("out: "), std::string::npos) << result.output;
    EXPECT_EQ(folder_->count("out"), 0);
  }
}

}  // namespace
}  // namespace cortado
