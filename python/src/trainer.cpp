#include "cortado/api/trainer.h"

#include "src/arrays.h"
#include "src/held.h"
#include "src/layers.h"
#include "src/training.h"

namespace cortado::python {

Training::Training(const api::Solver& solver, const ArrayData& data, const api::TrainerOptions& options)
    : arrays_(data.arrays) {
  const py::gil_scoped_release release;
  trainer_ = std::make_unique<api::Trainer>(solver, data.data, options);
  trainer_->observe(events_);
}

Training::~Training() {
  const py::gil_scoped_release release;
  trainer_.reset();
}

namespace {

std::function<void(const std::string&)> notice_by(py::object function) {
  if (function.is_none()) return {};
  return [function = held(std::move(function))](const std::string& line) {
    const py::gil_scoped_acquire lock;
    (*function)(line);
  };
}

std::unique_ptr<Training> training_of(const api::Solver& solver, const ArrayData* data,
                                      const api::Strategy* strategy, int threads, int reader_threads,
                                      const std::string& device, const std::string& kernels, bool fast_math,
                                      bool reproducible, bool keep_tensors, bool open_nets, bool launched,
                                      py::object layers, py::object notice) {
  api::TrainerOptions options{.job = launched ? api::Job::launched() : api::Job(),
                              .strategy = strategy ? *strategy : api::Strategy(),
                              .threads = threads,
                              .reader_threads = reader_threads,
                              .device = device,
                              .kernels = kernels,
                              .fast_math = fast_math,
                              .reproducible = reproducible,
                              .keep_tensors = keep_tensors,
                              .open_nets = open_nets,
                              .user_layers = layers_by(std::move(layers)),
                              .notice = notice_by(std::move(notice))};
  return std::make_unique<Training>(solver, data ? *data : ArrayData{}, options);
}

py::list tests_of(Training& training) {
  py::list rows;
  for (const api::TestResult& test : training.computed([](api::Trainer& t) { return t.test(); }))
    rows.append(row_of(test));
  return rows;
}

void set_parameter(Training& training, const std::string& name, const Array& values) {
  const std::span<const float> given = values_of(values);
  training.trainer().set_parameter(name, {given.begin(), given.end()});
}

py::dict passed_over(const api::PassedOver& passed) {
  py::dict layers;
  layers["of_network"] = passed.of_network;
  layers["of_file"] = passed.of_file;
  return layers;
}

void bind_values(py::class_<Training>& trainer) {
  trainer
      .def(
          "tensor",
          [](Training& training, const std::string& name) {
            return array_of(training.computed([&](api::Trainer& t) { return t.tensor(name); }));
          },
          py::arg("name"),
          "A copy of the last batch's values. Losses and outputs are always there, others with keep_tensors.")
      .def(
          "gradient",
          [](Training& training, const std::string& name) {
            return array_of(training.computed([&](api::Trainer& t) { return t.gradient(name); }));
          },
          py::arg("name"), "A copy of the gradient of the loss by that tensor.")
      .def(
          "parameter",
          [](Training& training, const std::string& name) {
            return array_of(training.computed([&](api::Trainer& t) { return t.parameter(name); }));
          },
          py::arg("name"), "A copy of a parameter ('conv1/weight') in the order of Caffe's files.")
      .def("set_parameter", &set_parameter, py::arg("name"), py::arg("values"),
           "Copies the values into the parameter.");
}

void bind_files(py::class_<Training>& trainer) {
  trainer
      .def(
          "load_weights",
          [](Training& training, const std::string& path) {
            return passed_over(training.computed([&](api::Trainer& t) { return t.load_weights(path); }));
          },
          py::arg("path"),
          "Reads .caffemodel, .h5 or .safetensors. Returns the layers passed over: of_network, of_file.")
      .def(
          "snapshot",
          [](Training& training, const std::optional<std::string>& prefix) {
            return training.computed(
                [&](api::Trainer& t) { return prefix ? t.snapshot(*prefix) : t.snapshot(); });
          },
          py::arg("prefix") = std::nullopt, "Writes PREFIX_iter_N; returns the file to restore from.")
      .def(
          "restore",
          [](Training& training, const std::string& snapshot) {
            const auto restored = training.computed([&](api::Trainer& t) { return t.restore(snapshot); });
            py::dict row;
            row["path"] = restored.path;
            row["fault"] = restored.fault;
            return row;
          },
          py::arg("snapshot"),
          "Goes on from a snapshot. Returns path (of what was read) and fault (of the one asked for; empty: "
          "none).");
}

void bind_events(py::class_<Training>& trainer) {
  trainer
      .def(
          "observe",
          [](Training& training, py::object iteration, py::object test, py::object snapshot,
             py::object iteration_begins, py::object gradients) {
            training.events().add({std::move(iteration_begins), std::move(gradients), std::move(iteration),
                                   std::move(test), std::move(snapshot)});
          },
          py::kw_only(), py::arg("iteration") = py::none(), py::arg("test") = py::none(),
          py::arg("snapshot") = py::none(), py::arg("iteration_begins") = py::none(),
          py::arg("gradients") = py::none(),
          "Functions to call: iteration(dict), test(dict), snapshot(iteration, path), "
          "iteration_begins(iteration) and, with open_nets, gradients(iteration): before the update. What "
          "they raise stops the training after the iteration at hand and is raised by step() or run().")
      .def(
          "request_stop", [](Training& training) { training.events().stop().request_stop(); },
          "Asks step() or run() to stop after the iteration at hand. Any thread and any callback may ask.");
}

void bind_nets(py::class_<Training>& trainer) {
  trainer
      .def(
          "net", [](Training& training) { return training.trainer().net(); }, py::keep_alive<0, 1>(),
          "With open_nets: the training net, to be run part by part between the calls of this trainer.")
      .def_property_readonly("test_nets", [](Training& training) { return training.trainer().test_nets(); })
      .def(
          "test_net", [](Training& training, int index) { return training.trainer().test_net(index); },
          py::arg("index"), py::keep_alive<0, 1>(), "The same of a test net.")
      .def(
          "update",
          [](Training& training) {
            training.computed([](api::Trainer& t) {
              t.update();
              return true;
            });
          },
          "With open_nets: updates the parameters by the gradients that net() has, and counts no iteration.");
}

void bind_training(py::class_<Training>& trainer) {
  trainer
      .def(
          "step",
          [](Training& training, int64_t iterations) {
            return training.computed(
                [&, stop = training.events().stop()](api::Trainer& t) { return t.step(iterations, stop); });
          },
          py::arg("iterations") = 1,
          "Trains so many iterations, with the tests and snapshots that the solver asks for on the way. "
          "False: request_stop() was called.")
      .def(
          "run",
          [](Training& training) {
            return training.computed(
                [stop = training.events().stop()](api::Trainer& t) { return t.run(stop); });
          },
          "Trains up to the solver's max_iter, with its last test and snapshot.")
      .def("test", &tests_of, "Tests each test net; a dict each: iteration, net, outputs, loss, seconds.")
      .def_property_readonly(
          "iteration", [](Training& t) { return t.trainer().iteration(); }, "Iterations done.")
      .def_property_readonly(
          "loss", [](Training& t) { return t.trainer().loss(); }, "Of the last iteration.")
      .def_property_readonly(
          "network", [](Training& t) { return t.trainer().network(); },
          "The trained network, with the shapes that its data have.")
      .def_property_readonly(
          "skipped_records", [](Training& t) { return t.trainer().skipped_records(); },
          "Broken records, each counted once.");
}

}  // namespace

void bind_trainer(py::module_& module) {
  py::class_<Training> trainer(
      module, "Trainer",
      "Trains a network. It computes without the interpreter's lock. Ctrl-C stops it "
      "after the iteration at hand.");
  trainer.def(py::init(&training_of), py::arg("solver"), py::arg("data") = py::none(), py::kw_only(),
              py::arg("strategy") = py::none(), py::arg("threads") = 0, py::arg("reader_threads") = 1,
              py::arg("device") = "cpu", py::arg("kernels") = "", py::arg("fast_math") = false,
              py::arg("reproducible") = false, py::arg("keep_tensors") = false, py::arg("open_nets") = false,
              py::arg("launched") = false, py::arg("layers") = py::none(), py::arg("notice") = py::none(),
              "threads: of computing; 0: as many as OpenMP gives\n"
              "device: 'cpu', 'gpu' (this rank's own), 'gpu:1', or 'emulated', a device for tests\n"
              "kernels: only this implementation, or 'measured'; empty: the best of all\n"
              "reproducible: the same bits on any number of ranks and threads; what cannot is refused\n"
              "keep_tensors: every tensor and gradient can be read, at the price of their memory\n"
              "open_nets: net() and test_net() are there, at the price of memory and speed\n"
              "launched: this process is one of the ranks that mpiexec, mpirun or srun started\n"
              "layers: makes layers of type Python, as of Network.from_file\n"
              "notice: called with lines that are worth knowing, on any thread");
  module.def("check_device", &api::check_device, py::arg("device"),
             "Raises UserError, with the reason, unless this host has the device that Trainer would take.");
  bind_training(trainer);
  bind_values(trainer);
  bind_files(trainer);
  bind_events(trainer);
  bind_nets(trainer);
}

}  // namespace cortado::python
