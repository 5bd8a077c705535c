# Finds the MPI that CORTADO_MPI names: target cortado_mpi, CORTADO_MPI_LAUNCHER (a command that "-n N command"
# follows). Without it CORTADO_MPI_FOUND is false and Cortado runs one rank.
find_package(PkgConfig REQUIRED)
set(CORTADO_MPI mpich CACHE STRING "MPI to build with: mpich, openmpi or OFF")
set_property(CACHE CORTADO_MPI PROPERTY STRINGS mpich openmpi OFF)
set(CORTADO_MPI_FOUND FALSE)
set(module "")

# Debian installs both MPIs side by side; their pkg-config files tell them apart.
if(CORTADO_MPI STREQUAL "mpich")
  pkg_check_modules(MPICH IMPORTED_TARGET mpich)
  find_program(CORTADO_MPICH_EXEC NAMES mpiexec.mpich mpiexec.hydra)
  set(module PkgConfig::MPICH)
  set(program ${CORTADO_MPICH_EXEC})
  # A rank that is gone is found by the process that started the job, which names it and stops the others.
  set(arguments "-disable-auto-cleanup")
elseif(CORTADO_MPI STREQUAL "openmpi")
  pkg_check_modules(OPENMPI IMPORTED_TARGET ompi-c)
  find_program(CORTADO_OPENMPI_EXEC NAMES mpirun.openmpi)
  set(module PkgConfig::OPENMPI)
  set(program ${CORTADO_OPENMPI_EXEC})
  set(arguments "--oversubscribe --bind-to none -x CORTADO_JOB")
elseif(CORTADO_MPI)
  message(FATAL_ERROR "CORTADO_MPI is '${CORTADO_MPI}'; give mpich, openmpi or OFF")
endif()

if(CORTADO_MPI AND TARGET "${module}" AND program)
  set(CORTADO_MPI_FOUND TRUE)
  set(CORTADO_MPI_LAUNCHER "${program} ${arguments}")
  add_library(cortado_mpi INTERFACE)
  target_link_libraries(cortado_mpi INTERFACE ${module})
  # The C interface alone, without the C++ one that MPI has given up.
  target_compile_definitions(cortado_mpi INTERFACE CORTADO_MPI_LAUNCHER="${CORTADO_MPI_LAUNCHER}" OMPI_SKIP_MPICXX
                                                   MPICH_SKIP_MPICXX)
elseif(CORTADO_MPI)
  message(WARNING "${CORTADO_MPI} is not installed: Cortado is built without MPI and runs one rank")
endif()
