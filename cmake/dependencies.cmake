# The libraries of others. gnomon_dependencies is what the library links;
# gnomon_pc_requires names the same for pkg-config.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
set(gnomon_dependencies Threads::Threads ${CMAKE_DL_LIBS} m)
set(gnomon_pc_requires "")

# Random123 is headers only. It is reached through a link of its own, since naming the
# folder that holds it would bring this machine's headers into a cross build.
find_path(RANDOM123_INCLUDE Random123/philox.h REQUIRED NO_CMAKE_FIND_ROOT_PATH)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/random123)
file(CREATE_LINK ${RANDOM123_INCLUDE}/Random123 ${PROJECT_BINARY_DIR}/random123/Random123 SYMBOLIC)
add_library(gnomon_random123 INTERFACE)
target_include_directories(gnomon_random123 SYSTEM INTERFACE ${PROJECT_BINARY_DIR}/random123)

# So is xxHash: the checksums of index files.
add_library(gnomon_xxhash INTERFACE)
if(NOT GNOMON_CORE_ONLY)
  find_path(XXHASH_INCLUDE xxhash.h REQUIRED)
  target_include_directories(gnomon_xxhash SYSTEM INTERFACE ${XXHASH_INCLUDE})
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
  pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
  list(APPEND gnomon_dependencies PkgConfig::JANSSON PkgConfig::ZLIB)
  list(APPEND gnomon_pc_requires jansson zlib)
  if(GNOMON_WITH_LIBZIP)
    pkg_check_modules(LIBZIP REQUIRED IMPORTED_TARGET libzip)
    list(APPEND gnomon_dependencies PkgConfig::LIBZIP)
    list(APPEND gnomon_pc_requires libzip)
  endif()
  if(GNOMON_WITH_ZSTD)
    pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
    list(APPEND gnomon_dependencies PkgConfig::ZSTD)
    list(APPEND gnomon_pc_requires libzstd)
  endif()
  if(GNOMON_WITH_HDF5)
    # Debian's name for the build without MPI comes first.
    pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial hdf5)
    # Its headers are compiled against; the library is opened at run time, by the name that this is.
    if(NOT GNOMON_HDF5_LIBRARY)
      find_library(hdf5_file NAMES ${HDF5_LIBRARIES} HINTS ${HDF5_LIBRARY_DIRS} NO_CACHE REQUIRED)
      execute_process(COMMAND ${CMAKE_READELF} -d ${hdf5_file} OUTPUT_VARIABLE hdf5_dynamic ERROR_QUIET)
      if(NOT hdf5_dynamic MATCHES "SONAME[^\n]*\\[([^]]+)\\]")
        message(FATAL_ERROR "${hdf5_file} is no shared library: name one by -DGNOMON_HDF5_LIBRARY=")
      endif()
      set(GNOMON_HDF5_LIBRARY ${CMAKE_MATCH_1} CACHE STRING "The HDF5 library's name for dlopen")
    endif()
  endif()
endif()
