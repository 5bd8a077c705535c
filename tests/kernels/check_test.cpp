// The harness itself: it accepts the reference and rejects kernels and layers that are wrong in one way each.
#include "tests/kernels/check.h"

#include "cortado/kernels/reference/reference.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"

namespace cortado::check {
namespace {

enum class Fault {
  none,
  wrong_output,
  unwritten_output,
  wrong_gradient,
  accumulated_gradient,
  written_after,
  reads_denied_input,
  keeps_scratch,
};

// The reference ReLU with a fault.
template <typename T>
class FaultyRelu : public KernelOf<T> {
 public:
  FaultyRelu(const Task& task, Fault fault)
      : fault_(fault), size_(task.local_output(0).size()), relu_(make_reference_kernel<T>(task)) {}

  std::string name() const override { return "faulty"; }
  BackwardReads backward_reads() const override { return {.inputs = fault_ != Fault::reads_denied_input}; }
  Bytes scratch_bytes() const override { return {4}; }

  void forward(const ArgumentsOf<T>& a) override {
    relu_->forward(a);
    if (fault_ == Fault::wrong_output) a.outputs[0][size_ / 2] += T{0.001};
    if (fault_ == Fault::unwritten_output) a.outputs[0][size_ - 1] = std::numeric_limits<T>::quiet_NaN();
    if (fault_ == Fault::written_after) a.outputs[0][size_] = 0;
    *a.scratch = std::byte{1};
  }
  void backward(const ArgumentsOf<T>& a) override {
    relu_->backward(a);
    if (fault_ == Fault::wrong_gradient) a.input_gradients[0][size_ / 2] += T{0.01};
    if (fault_ == Fault::accumulated_gradient) a.input_gradients[0][0] += T(runs_++);
    if (fault_ == Fault::keeps_scratch && *a.scratch != std::byte{1}) a.input_gradients[0][0] += 1;
  }

 private:
  Fault fault_;
  int64_t size_;
  std::unique_ptr<KernelOf<T>> relu_;
  int runs_ = 0;
};

Task relu_task() {
  Shape shape{2, 3, 4, 5};
  return whole_task(std::make_shared<Pointwise>(ReluOptions{.negative_slope = 0.1}), Phase::train,
                    {&shape, 1}, 1);
}

TEST(Check, AcceptsARightKernel) {
  Task task = relu_task();
  FaultyRelu<float> kernel(task, Fault::none);
  EXPECT_TRUE(matches_reference(task, kernel, 0));
  EXPECT_TRUE(matches_reference(task, kernel, 0, DataKind::small_integers));
}

TEST(Check, RejectsEachFault) {
  Task task = relu_task();
  for (Fault fault :
       {Fault::wrong_output, Fault::unwritten_output, Fault::wrong_gradient, Fault::accumulated_gradient,
        Fault::written_after, Fault::reads_denied_input, Fault::keeps_scratch}) {
    FaultyRelu<float> kernel(task, fault);
    EXPECT_FALSE(matches_reference(task, kernel, 1e-5)) << "fault " << static_cast<int>(fault);
  }
}

TEST(Check, RejectsAWrongGradient) {
  Task task = relu_task();
  FaultyRelu<double> right(task, Fault::none), wrong(task, Fault::wrong_gradient);
  EXPECT_TRUE(gradients_match_differences(task, right));
  EXPECT_FALSE(gradients_match_differences(task, wrong));
}

// A pooling layer whose input box is one position too small or too large.
class MisjudgedPooling : public Pooling {
 public:
  MisjudgedPooling(PoolingOptions options, int error) : Pooling(std::move(options)), error_(error) {}
  Box input_box(std::span<const Shape> inputs, int input, int output, const Box& output_box) const override {
    Box box = Pooling::input_box(inputs, input, output, output_box);
    box[2].end += error_;
    return box.clip(inputs[0]);
  }

 private:
  int error_;
};

TEST(Check, RejectsWrongInputBoxes) {
  PoolingOptions options{.method = PoolingOptions::Method::average, .kernel = {3}, .stride = {2}};
  Shape input{2, 2, 11, 9};
  Task task = whole_task(std::make_shared<Pooling>(options), Phase::train, {&input, 1}, 1);
  EXPECT_TRUE(input_boxes_hold(task, true));
  EXPECT_FALSE(input_boxes_hold(MisjudgedPooling(options, -1), task, true));
  EXPECT_FALSE(input_boxes_hold(MisjudgedPooling(options, 1), task, true));
}

}  // namespace
}  // namespace cortado::check
