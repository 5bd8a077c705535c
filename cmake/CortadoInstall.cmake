# What `cmake --install` installs: the command with its manual pages and completions, the nets and machines; and for programs the
# headers of api/, the library, and the packages that find_package(cortado) and pkg-config read. The library is an archive of
# all rooms, libcortado.a, or, with BUILD_SHARED_LIBS, libcortado_api.so beside the other rooms.
# Components (of `cmake --install --component` and of packages): cortado, libraries, dev.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

if(TARGET cortado)
  if(BUILD_SHARED_LIBS)
    set_target_properties(cortado PROPERTIES INSTALL_RPATH "$ORIGIN/../${CORTADO_LIBRARY_FOLDER}")
  endif()
  install(TARGETS cortado RUNTIME DESTINATION bin COMPONENT cortado)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/machines DESTINATION share/cortado COMPONENT cortado
    FILES_MATCHING PATTERN "*.prototxt" PATTERN "*.json" PATTERN "generator" EXCLUDE)
  # The command writes its manual pages and completions itself.
  install(CODE "set(MANUAL_COMMAND $<TARGET_FILE:cortado>)\nset(MANUAL_FOLDER ${PROJECT_BINARY_DIR}/manual)" COMPONENT cortado)
  install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/CortadoManual.cmake COMPONENT cortado)
endif()

get_property(rooms GLOBAL PROPERTY cortado_rooms)
if(BUILD_SHARED_LIBS)
  set(cortado_library ${CORTADO_LIBRARY_FOLDER}/libcortado_api.so)
  set(cortado_libraries "")
  set(cortado_link "-L\${prefix}/${CORTADO_LIBRARY_FOLDER} -Wl,-rpath,\${prefix}/${CORTADO_LIBRARY_FOLDER} -lcortado_api")
  set(cortado_packages "")
else()
  set(cortado_library lib/libcortado.a)
  set(objects $<TARGET_OBJECTS:cortado_proto>)
  foreach(room ${rooms})
    list(APPEND objects $<TARGET_OBJECTS:${room}>)
  endforeach()
  add_library(cortado_archive STATIC ${objects})
  set_target_properties(cortado_archive PROPERTIES OUTPUT_NAME cortado LINKER_LANGUAGE CXX)
  install(TARGETS cortado_archive ARCHIVE DESTINATION lib COMPONENT dev)
  # What programs that link the archive link besides: by the names of this build.
  set(cortado_libraries ${HDF5_C_LIBRARIES} ${DNNL} ${JPEG_LIBRARIES} ${PNG_LIBRARIES} ${lmdb_LINK_LIBRARIES} ${hwloc_LINK_LIBRARIES}
                        ${MPICH_LINK_LIBRARIES} ${OPENMPI_LINK_LIBRARIES} ${CMAKE_DL_LIBS})
  list(TRANSFORM cortado_libraries REPLACE "^([a-z]+)$" "-l\\1" OUTPUT_VARIABLE words)
  list(JOIN words " " words)
  set(cortado_link "-L\${prefix}/lib -lcortado ${words} ${OpenMP_CXX_FLAGS} -pthread")
  set(cortado_packages "protobuf, fmt")
endif()

file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cortado/api/*.h)
install(FILES ${headers} DESTINATION include/cortado/api COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/src/cortado/base/error.h DESTINATION include/cortado/base COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/src/cortado/layers/user_layer.h DESTINATION include/cortado/layers COMPONENT dev)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/cortadoConfig.cmake.in ${PROJECT_BINARY_DIR}/cortadoConfig.cmake
  INSTALL_DESTINATION lib/cmake/cortado)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cortadoConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cortadoConfig.cmake ${PROJECT_BINARY_DIR}/cortadoConfigVersion.cmake
  DESTINATION lib/cmake/cortado COMPONENT dev)
configure_file(${CMAKE_CURRENT_LIST_DIR}/cortado.pc.in ${PROJECT_BINARY_DIR}/cortado.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cortado.pc DESTINATION lib/pkgconfig COMPONENT dev)
