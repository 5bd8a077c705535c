# What `cmake --install` gives programs: the headers of api/, the library, and the package that find_package(cortado)
# reads, with the one target cortado::cortado. The library is an archive of all rooms, libcortado.a, or, with
# BUILD_SHARED_LIBS, libcortado_api.so beside the other rooms.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

get_property(rooms GLOBAL PROPERTY cortado_rooms)
if(BUILD_SHARED_LIBS)
  set(cortado_library libcortado_api.so)
  set(cortado_libraries "")
else()
  set(cortado_library libcortado.a)
  set(objects $<TARGET_OBJECTS:cortado_proto>)
  foreach(room ${rooms})
    list(APPEND objects $<TARGET_OBJECTS:${room}>)
  endforeach()
  add_library(cortado_archive STATIC ${objects})
  set_target_properties(cortado_archive PROPERTIES OUTPUT_NAME cortado LINKER_LANGUAGE CXX)
  install(TARGETS cortado_archive ARCHIVE DESTINATION lib)
  if(leveldb_FOUND)
    get_target_property(leveldb_library leveldb::leveldb LOCATION)
  endif()
  # What programs that link the archive link besides: by the names of this build.
  set(cortado_libraries ${HDF5_C_LIBRARIES} ${DNNL} ${JPEG_LIBRARIES} ${PNG_LIBRARIES} ${lmdb_LINK_LIBRARIES} ${hwloc_LINK_LIBRARIES}
                        ${MPICH_LINK_LIBRARIES} ${OPENMPI_LINK_LIBRARIES} ${leveldb_library} ${CMAKE_DL_LIBS})
endif()

file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cortado/api/*.h)
install(FILES ${headers} DESTINATION include/cortado/api)
install(FILES ${PROJECT_SOURCE_DIR}/src/cortado/base/error.h DESTINATION include/cortado/base)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cortadoConfig.cmake.in ${PROJECT_BINARY_DIR}/cortadoConfig.cmake
  INSTALL_DESTINATION lib/cmake/cortado)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cortadoConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cortadoConfig.cmake ${PROJECT_BINARY_DIR}/cortadoConfigVersion.cmake
  DESTINATION lib/cmake/cortado)
