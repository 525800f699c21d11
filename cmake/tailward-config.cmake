include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(tl-expected)
find_dependency(fmt)
find_dependency(Protobuf)
find_dependency(ZLIB)
include(${CMAKE_CURRENT_LIST_DIR}/tailward-targets.cmake)

# Timers that are moved by hand, for the tests of those who use the library.
add_library(tailward::testing INTERFACE IMPORTED)
target_link_libraries(tailward::testing INTERFACE tailward::io)
