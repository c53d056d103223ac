# The command for a machine that has a GPU and little else: it brings jansson and zlib with it, and
# needs the C library alone. It lies beside the plugin, where it finds it (scripts/gpu.sh).
find_path(JANSSON_INCLUDE jansson.h)
find_path(ZLIB_INCLUDE zlib.h)
find_path(XXHASH_INCLUDE xxhash.h)
find_library(JANSSON_ARCHIVE libjansson.a)
find_library(ZLIB_ARCHIVE libz.a)
if(NOT JANSSON_INCLUDE OR NOT ZLIB_INCLUDE OR NOT XXHASH_INCLUDE OR NOT JANSSON_ARCHIVE OR NOT ZLIB_ARCHIVE)
  message(STATUS "No command beside the plugin: it takes xxHash, and jansson and zlib as archives")
  return()
endif()
file(GLOB_RECURSE command_sources CONFIGURE_DEPENDS cli/*.c src/io/*.c src/lsh/file/*.c src/dedup/*.c src/*json.c)
add_executable(gnomon_command ${command_sources})
set_target_properties(gnomon_command PROPERTIES OUTPUT_NAME gnomon C_VISIBILITY_PRESET hidden
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gpu)
target_compile_definitions(gnomon_command PRIVATE GNOMON_BUILDING GNOMON_WITH_HDF5=0 GNOMON_WITH_LIBZIP=0
  GNOMON_WITH_UTF8PROC=0 GNOMON_WITH_ZSTD=0)
target_include_directories(gnomon_command PRIVATE src cli ${JANSSON_INCLUDE} ${ZLIB_INCLUDE} ${XXHASH_INCLUDE})
target_link_libraries(gnomon_command PRIVATE gnomon_static gnomon_flags gnomon_random123
  ${JANSSON_ARCHIVE} ${ZLIB_ARCHIVE})
