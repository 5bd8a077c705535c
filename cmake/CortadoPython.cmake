# Finds what the Python module is built with: target Python3::Module, CORTADO_PYBIND11 (its folder of headers). Without
# it CORTADO_PYTHON_FOUND is false and no module is built. -DPython3_EXECUTABLE=... names another Python than the
# system's.
#
# With sanitizers it is built where it is asked for; the Python that loads it must then have their libraries preloaded
# (scripts/fuzz.sh).
set(default ON)
if(CORTADO_SANITIZE)
  set(default OFF)
endif()
option(CORTADO_PYTHON "Build the Python module" ${default})
set(CORTADO_PYTHON_FOUND FALSE)
if(NOT CORTADO_PYTHON)
  return()
endif()
if(NOT DEFINED Python3_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python that the module is for")
endif()
find_package(Python3 COMPONENTS Interpreter Development.Module QUIET)
find_path(CORTADO_PYBIND11 pybind11/pybind11.h)
if(Python3_Development.Module_FOUND AND CORTADO_PYBIND11)
  set(CORTADO_PYTHON_FOUND TRUE)
else()
  message(STATUS "The Python module is not built; scripts/install.sh pybind11-dev python3-dev installs what it needs")
endif()
