# The CUDA plugin: a library of its own, found at run time (src/base/plugin.h), so that
# one build of the core serves machines with and without CUDA.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS src/cuda/*.cu)
set(build_cuda OFF)
# The core alone, for another processor or a small machine, has the plugin only when asked.
if(GNOMON_CUDA STREQUAL ON OR (GNOMON_CUDA STREQUAL AUTO AND NOT GNOMON_CORE_ONLY AND NOT GNOMON_SANITIZE))
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(ENV{CUDACXX} /usr/local/cuda/bin/nvcc)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    set(build_cuda ON)
  elseif(GNOMON_CUDA STREQUAL ON)
    message(FATAL_ERROR "GNOMON_CUDA is ON, and no CUDA compiler was found")
  endif()
endif()
if(build_cuda)
  # Hopper's matrix instructions need 90a; every newer GPU takes the PTX of 80.
  set(GNOMON_CUDA_TARGETS "80-real;90a-real;80-virtual" CACHE STRING
    "GPU architectures to build the plugin for, as CMAKE_CUDA_ARCHITECTURES has them")
  set(CMAKE_CUDA_ARCHITECTURES ${GNOMON_CUDA_TARGETS})
  enable_language(CUDA)
  # What the plugin needs of the core is compiled into it: the core's symbols are hidden.
  add_library(gnomon_cuda_objects OBJECT ${cuda_sources}
    src/base/dtype.c src/operator/kinds/gaussian16.c src/operator/philox.c src/operator/scale.c)
  set_target_properties(gnomon_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    CUDA_STANDARD 17 CUDA_RUNTIME_LIBRARY Static)
  target_compile_definitions(gnomon_cuda_objects PRIVATE GNOMON_BUILDING)
  target_include_directories(gnomon_cuda_objects PUBLIC src include)
  target_link_libraries(gnomon_cuda_objects PRIVATE gnomon_random123)
  target_compile_options(gnomon_cuda_objects PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
    $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${GNOMON_WERROR}>>:-Werror=all-warnings -Xcompiler=-Werror>)
  add_library(gnomon_cuda MODULE $<TARGET_OBJECTS:gnomon_cuda_objects>)
  set_target_properties(gnomon_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/plugin.map)
  # It exports its entry and nothing else, and brings what little it needs of the C++ library.
  target_link_options(gnomon_cuda PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map
    -Wl,-z,defs -Wl,--as-needed -static-libstdc++ -static-libgcc)
  if(GNOMON_CORE_ONLY) # beside the programs that use it there: scripts/gpu.sh
    set_target_properties(gnomon_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/gpu)
  else()
    install(TARGETS gnomon_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/gnomon)
  endif()
endif()
