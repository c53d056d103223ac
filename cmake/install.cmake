# What 'install' puts where, and how others find it.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gnomon)

install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
# Two sets: who links the shared library needs no other library's development files.
install(TARGETS gnomon EXPORT gnomonTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS gnomon_static EXPORT gnomonStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gnomonTargets NAMESPACE gnomon:: DESTINATION ${package_dir})
install(EXPORT gnomonStaticTargets NAMESPACE gnomon:: DESTINATION ${package_dir})

configure_package_config_file(cmake/gnomonConfig.cmake.in gnomonConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(gnomonConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gnomonConfig.cmake ${PROJECT_BINARY_DIR}/gnomonConfigVersion.cmake
  DESTINATION ${package_dir})

string(REPLACE ";" ", " pc_requires "${gnomon_pc_requires}")
# The installed tree may be moved: paths depend on the place of the .pc file itself.
file(RELATIVE_PATH pc_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/gnomon.pc.in gnomon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gnomon.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET gnomon_command)
  install(TARGETS gnomon_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
foreach(completion "gnomon.bash|bash-completion/completions|gnomon" "_gnomon|zsh/site-functions|_gnomon"
        "gnomon.fish|fish/vendor_completions.d|gnomon.fish")
  string(REPLACE "|" ";" completion ${completion})
  list(GET completion 0 file)
  list(GET completion 1 place)
  list(GET completion 2 name)
  file(GLOB found CONFIGURE_DEPENDS cli/completions/${file})
  if(found)
    install(FILES ${found} DESTINATION ${CMAKE_INSTALL_DATADIR}/${place} RENAME ${name})
  endif()
endforeach()
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.json" PATTERN man EXCLUDE)
