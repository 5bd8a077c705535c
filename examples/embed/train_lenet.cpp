// Trains LeNet on images that the program draws, takes a snapshot, and goes on from it.
//   train_lenet [ITERATIONS [PREFIX]]
//   mpiexec -n 2 train_lenet              every layer cut over two ranks
#include <cmath>
#include <cortado/api/cortado.h>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <random>
#include <span>
#include <string>

namespace api = cortado::api;

namespace {

constexpr int side = 28, classes = 10;

// A bright line through the image, at the class's angle, under noise. It depends on the number alone.
void draw(int64_t number, std::span<float> image, float& label) {
  std::minstd_rand random(static_cast<unsigned>(number + 1));
  random.discard(10);
  std::uniform_real_distribution<float> noise(0, 0.5F), shift(-4, 4);
  const auto kind = static_cast<float>(random() % classes);
  const float angle = kind * std::numbers::pi_v<float> / classes, distance = shift(random);
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column) {
      const auto y = static_cast<float>(row - side / 2), x = static_cast<float>(column - side / 2);
      const bool on_line = std::abs(x * std::sin(angle) - y * std::cos(angle) - distance) < 1.5F;
      image[static_cast<size_t>(row * side + column)] = noise(random) + (on_line ? 0.5F : 0.F);
    }
  label = kind;
}

// Fills the samples that this rank needs. Tests see samples that no training sees.
void fill(api::BatchRequest& batch) {
  const int64_t first = batch.number * batch.batch + (batch.phase == api::Phase::test ? 1'000'000 : 0);
  const std::span<float> images = batch.tops[0].values, labels = batch.tops[1].values;
  for (int64_t sample = batch.begin; sample < batch.end; ++sample) {
    const auto row = static_cast<size_t>(sample - batch.begin);
    draw(first + sample, images.subspan(row * side * side, side * side), labels[row]);
  }
}

class Progress : public api::Observer {
 public:
  void iteration(const api::Iteration& done) override {
    if (done.number % 20 == 0) std::printf("iteration %3d  loss %.4f\n", int(done.number), done.loss);
  }
  void test(const api::TestResult& test) override {
    for (const api::Output& output : test.outputs)
      std::printf("test  %s %.4f\n", output.name.c_str(), output.value);
  }
};

void train(int iterations, const std::string& prefix) {
  const api::Job job = api::Job::launched();  // one rank, unless an MPI launcher started more

  const api::Network net = api::Network::from_file(MODELS "/lenet/train_val.prototxt");
  const api::Solver solver(
      {.base_lr = 0.01, .momentum = 0.9, .weight_decay = 0.0005, .test_iter = 5, .snapshot_prefix = prefix},
      net);
  api::Data data;  // in place of the databases that the net's file names
  data.fill("data", fill, {{1, side, side}, {}});
  const api::TrainerOptions options{.job = job, .strategy = "data"};

  Progress progress;
  api::Trainer trainer(solver, data, options);
  if (job.rank() == 0) trainer.observe(progress);
  trainer.step(iterations);
  trainer.test();
  const std::string snapshot = trainer.snapshot();

  // Another trainer goes on from the snapshot as the first does: with the same losses.
  api::Trainer resumed(solver, data, options);
  resumed.restore(snapshot);
  trainer.step(5);
  resumed.step(5);
  if (job.rank() == 0)
    std::printf("iteration %3d  loss %.6f  resumed from %s: loss %.6f\n", int(trainer.iteration()),
                trainer.loss(), snapshot.c_str(), resumed.loss());
}

}  // namespace

int main(int count, char** words) {
  try {
    train(count > 1 ? std::atoi(words[1]) : 100, count > 2 ? words[2] : "lenet");
  } catch (const api::UserError& error) {
    std::fprintf(stderr, "train_lenet: %s\n", error.what());
    return 2;
  }
}
