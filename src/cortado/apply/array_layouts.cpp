#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/apply/array_file.h"
#include "cortado/base/error.h"
#include "cortado/net/hdf5_file.h"

namespace cortado {

// The header's length is a multiple of 64: blanks stand before its end of line.
ArrayLayout npy_layout(const std::string&, const std::string&, const std::vector<FeatureArray>& arrays) {
  ensure(arrays.size() == 1, "an .npy file holds one array");
  const Shape& shape = arrays[0].shape;
  std::string dictionary = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}{}), }}",
                                       fmt::join(shape.extents(), ", "), shape.rank() == 1 ? "," : "");
  constexpr size_t before = 10, boundary = 64;  // magic, version and length
  const size_t length = (before + dictionary.size() + 1 + boundary - 1) / boundary * boundary - before;
  dictionary.resize(length - 1, ' ');
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(length % 256);
  head += static_cast<char>(length / 256);
  head += dictionary + "\n";
  return {head, {static_cast<int64_t>(head.size())}};
}

// Contiguous datasets get their place in the file at once, so that HDF5 need not write their values.
ArrayLayout hdf5_layout(const std::string& path, const std::string& temporary,
                        const std::vector<FeatureArray>& arrays) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // failures are told by exceptions
  hid_t file = H5Fcreate(temporary.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  Hdf5Handle with_groups(H5Pcreate(H5P_LINK_CREATE), H5Pclose),
      early(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(with_groups.get(), 1);
  H5Pset_alloc_time(early.get(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(early.get(), H5D_FILL_TIME_NEVER);
  ArrayLayout layout;
  bool good = file >= 0;
  for (const FeatureArray& array : arrays) {
    const std::vector<hsize_t> extents(array.shape.extents().begin(), array.shape.extents().end());
    Hdf5Handle space(H5Screate_simple(array.shape.rank(), extents.data(), nullptr), H5Sclose);
    Hdf5Handle data(H5Dcreate2(file, array.blob.c_str(), H5T_IEEE_F32LE, space.get(), with_groups.get(),
                               early.get(), H5P_DEFAULT),
                    H5Dclose);
    const haddr_t begin = data.open() ? H5Dget_offset(data.get()) : HADDR_UNDEF;
    good = good && begin != HADDR_UNDEF;
    layout.begins.push_back(static_cast<int64_t>(begin));
  }
  if (file >= 0 && H5Fclose(file) < 0) good = false;
  if (good) return layout;
  std::vector<std::string> names;
  for (const FeatureArray& array : arrays) names.push_back(array.blob);
  throw UserError(
      fmt::format("{}: HDF5 cannot make the dataset{} '{}': a name may not be part of another's (a and a/b); "
                  "choose another format, or extract them one by one",
                  path, names.size() > 1 ? "s" : "", fmt::join(names, "', '")));
}

}  // namespace cortado
