# How everything of the project is compiled.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX names beside C17
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(gnomon_flags INTERFACE)
target_compile_options(gnomon_flags INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes
  -Wmissing-prototypes -Wpointer-arith -Wvla -Wundef $<$<BOOL:${GNOMON_WERROR}>:-Werror>
  -ffp-contract=off # a fused multiply-add only where it is written: the same bits everywhere
  -fno-math-errno
  $<$<C_COMPILER_ID:GNU>:-Wno-format-truncation>) # error texts are cut on purpose
target_compile_definitions(gnomon_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)

if(GNOMON_SANITIZE)
  # NULL + 0 is left out: every compiler here takes it, and the next C allows it (WG14 N3322).
  add_compile_options(-fsanitize=${GNOMON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    $<$<C_COMPILER_ID:Clang>:-fno-sanitize=pointer-overflow>)
  add_link_options(-fsanitize=${GNOMON_SANITIZE})
endif()
