# What `cmake --install` installs: the library's targets, their headers by folder, and a package that
# find_package(tailward) finds. Included after all folders.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tailward)
install(EXPORT tailward NAMESPACE tailward:: FILE tailward-targets.cmake DESTINATION ${package})
install(DIRECTORY include/tailward DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tailward-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/tailward-config.cmake ${PROJECT_BINARY_DIR}/tailward-config-version.cmake
  DESTINATION ${package})
if(TARGET tailward)
  install(TARGETS tailward)
endif()
