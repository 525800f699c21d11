# What `cmake --install` installs: the library's targets, their headers by folder, a package that
# find_package(tailward) finds, and tailward.pc for pkg-config. Included after all folders.
include(CMakePackageConfigHelpers)

# Everything that include/tailward/ declares.
add_library(tailward_library INTERFACE)
add_library(tailward::tailward ALIAS tailward_library)
target_link_libraries(tailward_library INTERFACE tailward_client tailward_sync)
set_target_properties(tailward_library PROPERTIES EXPORT_NAME tailward)
install(TARGETS tailward_library EXPORT tailward)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/tailward)
install(EXPORT tailward NAMESPACE tailward:: FILE tailward-targets.cmake DESTINATION ${package})
install(DIRECTORY include/tailward DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tailward-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/tailward-config.cmake ${PROJECT_BINARY_DIR}/tailward-config-version.cmake
  DESTINATION ${package})

# A linker reads static libraries from left to right, so users stand before what they use: the folders' order,
# reversed.
get_property(libraries GLOBAL PROPERTY tailward_libraries)
list(REVERSE libraries)
list(TRANSFORM libraries PREPEND -l)
list(JOIN libraries " " libraries)
file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up "${up}")
configure_file(cmake/tailward.pc.in ${PROJECT_BINARY_DIR}/tailward.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tailward.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(TARGET tailward)
  install(TARGETS tailward)
endif()
