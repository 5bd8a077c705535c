#include "cortado/net/hdf5_file.h"

#include <array>
#include <exception>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/net/seal.h"

namespace cortado {
namespace {

// HDF5 prints its error stack unless told otherwise; here every failure is an exception.
void silence_hdf5() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

Hdf5Handle open_file(const std::string& path) {
  silence_hdf5();
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose};
}

Hdf5Handle create_memory_file() {
  silence_hdf5();
  Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  constexpr size_t increment = 64 << 20;
  H5Pset_fapl_core(access.get(), increment, false);
  return {H5Fcreate("memory", H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose};
}

// Without the time at which it was made: the same values are the same bytes, whenever they are written.
Hdf5Handle without_times() {
  Hdf5Handle property(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_obj_track_times(property.get(), 0);
  return property;
}

Hdf5Handle groups_on_the_way() {
  Hdf5Handle property(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(property.get(), 1);
  return property;
}

// Extents of a dataset, bounded by what its values can occupy in the file.
std::vector<int64_t> extents_of(const Hdf5Handle& space) {
  int rank = H5Sget_simple_extent_ndims(space.get());
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  if (rank < 0 || rank > Shape::max_rank) return {-1};
  H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  std::vector<int64_t> result;
  for (int axis = 0; axis < rank; ++axis) result.push_back(static_cast<int64_t>(extents[axis]));
  return result;
}

struct DatasetVisit {
  const std::function<void(const std::string&)>* visit;
  std::exception_ptr failure;
};

herr_t visit_link(hid_t group, const char* name, const H5L_info_t*, void* data) {
  auto* state = static_cast<DatasetVisit*>(data);
  Hdf5Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
  if (!object.open()) return -1;
  if (H5Iget_type(object.get()) != H5I_DATASET) return 0;
  try {
    (*state->visit)(name);
  } catch (...) {
    state->failure = std::current_exception();
    return -1;
  }
  return 0;
}

void check_written(herr_t status) {
  if (status < 0) throw InternalError("an HDF5 value cannot be put together in memory");
}

}  // namespace

bool is_hdf5(std::string_view content) { return content.starts_with("\x89HDF\r\n\x1a\n"); }

Hdf5Reader::Hdf5Reader(const std::string& path) : path_(path), guard_(path), file_(open_file(path)) {
  if (!file_.open())
    throw DamagedFile(fmt::format("{}: not a whole HDF5 file: it is truncated or of another kind", path));
}

void Hdf5Reader::fail(const std::string& what) const { throw UserError(fmt::format("{}: {}", path_, what)); }

bool Hdf5Reader::has(const std::string& name) const {
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    if (H5Lexists(file_.get(), name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
  }
  return H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT) > 0;
}

Hdf5Handle Hdf5Reader::dataset(const std::string& name) const {
  Hdf5Handle dataset(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.open()) fail(fmt::format("there is no dataset '{}'", name));
  return dataset;
}

Blob Hdf5Reader::blob(const std::string& name) const {
  Hdf5Handle data = dataset(name);
  Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  std::vector<int64_t> extents = extents_of(space);
  Blob blob;
  try {
    blob.shape = Shape(extents);
    blob.shape.size();
  } catch (const UserError& error) {
    fail(fmt::format("dataset '{}': {}", name, error.what()));
  }
  // A corrupt file may claim any extent; what is stored tells, even compressed, how much can be there.
  constexpr hsize_t best_compression = 1024;
  if (static_cast<hsize_t>(blob.shape.size()) / best_compression > H5Dget_storage_size(data.get())) {
    fail(fmt::format("dataset '{}' lacks values for its shape {}", name, blob.shape.text()));
  }
  blob.values.resize(static_cast<size_t>(blob.shape.size()));
  if (H5Dread(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, blob.values.data()) < 0) {
    fail(fmt::format("dataset '{}' cannot be read as numbers", name));
  }
  return blob;
}

int Hdf5Reader::integer(const std::string& name) const {
  Hdf5Handle data = dataset(name);
  Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  int value = 0;
  bool read = H5Sget_simple_extent_npoints(space.get()) == 1 &&
              H5Dread(data.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) >= 0;
  if (!read) fail(fmt::format("dataset '{}' is not an integer", name));
  return value;
}

std::string Hdf5Reader::text(const std::string& name) const {
  Hdf5Handle data = dataset(name);
  Hdf5Handle type(H5Dget_type(data.get()), H5Tclose);
  Hdf5Handle space(H5Dget_space(data.get()), H5Sclose);
  bool plain = H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0 &&
               H5Sget_simple_extent_npoints(space.get()) == 1 &&
               H5Tget_size(type.get()) <= H5Dget_storage_size(data.get());
  std::string value(plain ? H5Tget_size(type.get()) : 0, '\0');
  if (!plain || H5Dread(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.data()) < 0) {
    fail(fmt::format("dataset '{}' is not a text", name));
  }
  return value.substr(0, value.find('\0'));
}

void Hdf5Reader::for_each_dataset(const std::string& group,
                                  const std::function<void(const std::string&)>& visit) const {
  Hdf5Handle root(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT), H5Gclose);
  if (!root.open()) fail(fmt::format("there is no group '{}'", group));
  DatasetVisit state{&visit, nullptr};
  herr_t status = H5Lvisit(root.get(), H5_INDEX_NAME, H5_ITER_INC, visit_link, &state);
  if (state.failure) std::rethrow_exception(state.failure);
  if (status < 0) fail(fmt::format("group '{}' cannot be read", group));
}

Hdf5Writer::Hdf5Writer()
    : file_(create_memory_file()), with_groups_(groups_on_the_way()), without_times_(without_times()) {
  ensure(file_.open(), "an HDF5 file cannot be created in memory");
}

void Hdf5Writer::blob(const std::string& name, const Blob& blob) {
  std::vector<hsize_t> extents(blob.shape.extents().begin(), blob.shape.extents().end());
  Hdf5Handle space(extents.empty()
                       ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
                   H5Sclose);
  Hdf5Handle data(H5Dcreate2(file_.get(), name.c_str(), H5T_NATIVE_FLOAT, space.get(), with_groups_.get(),
                             without_times_.get(), H5P_DEFAULT),
                  H5Dclose);
  check_written(H5Dwrite(data.get(), H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, blob.values.data()));
}

void Hdf5Writer::integer(const std::string& name, int value) {
  hsize_t one = 1;
  Hdf5Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose);
  Hdf5Handle data(H5Dcreate2(file_.get(), name.c_str(), H5T_NATIVE_INT, space.get(), with_groups_.get(),
                             without_times_.get(), H5P_DEFAULT),
                  H5Dclose);
  check_written(H5Dwrite(data.get(), H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value));
}

void Hdf5Writer::text(const std::string& name, const std::string& value) {
  Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  Hdf5Handle data(H5Dcreate2(file_.get(), name.c_str(), type.get(), space.get(), with_groups_.get(),
                             without_times_.get(), H5P_DEFAULT),
                  H5Dclose);
  check_written(H5Dwrite(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, value.c_str()));
}

void Hdf5Writer::group(const std::string& name) {
  if (H5Lexists(file_.get(), name.c_str(), H5P_DEFAULT) > 0) return;
  Hdf5Handle group(H5Gcreate2(file_.get(), name.c_str(), with_groups_.get(), H5P_DEFAULT, H5P_DEFAULT),
                   H5Gclose);
  ensure(group.open(), "an HDF5 group cannot be created in memory");
}

void Hdf5Writer::write(const std::string& path) {
  check_written(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL));
  ssize_t size = H5Fget_file_image(file_.get(), nullptr, 0);
  if (size < 0) throw InternalError("an HDF5 file has no image");
  std::string image(static_cast<size_t>(size), '\0');
  if (H5Fget_file_image(file_.get(), image.data(), image.size()) < 0) {
    throw InternalError("an HDF5 file has no image");
  }
  write_file_atomically(path, sealed_hdf5(std::move(image)));
}

}  // namespace cortado
