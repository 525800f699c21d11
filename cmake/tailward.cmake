# How every folder of src/ becomes one library and, where it has *_test.cc files, one test program.

include(GNUInstallDirs)
find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
if(TAILWARD_TESTS OR TAILWARD_FUZZ)
  enable_testing()
endif()
if(TAILWARD_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Flags of our own code. They travel to our targets only, never to those who embed the library.
add_library(tailward_flags INTERFACE)
target_compile_features(tailward_flags INTERFACE cxx_std_20)
target_compile_options(tailward_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on std::string at -O2: gcc.gnu.org/PR105651.
  target_compile_options(tailward_flags INTERFACE -Wno-restrict)
endif()
if(TAILWARD_WERROR)
  target_compile_options(tailward_flags INTERFACE -Werror)
endif()
if(TAILWARD_SANITIZE)
  target_compile_options(tailward_flags INTERFACE -fsanitize=${TAILWARD_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tailward_flags INTERFACE -fsanitize=${TAILWARD_SANITIZE})
endif()

# Under sanitizers the compiler spends most of its time on optimising tests, which then run for seconds. Measured with
# asan: half of the time to build the tests.
if(TAILWARD_SANITIZE)
  set(TAILWARD_TEST_OPTIONS -O0)
endif()

# Where nothing but time is to be gained: the everyday build and the users' show that each source includes what it needs.
if(TAILWARD_PCH)
  set(pch <algorithm> <array> <chrono> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <span>
      <sstream> <string> <string_view> <thread> <variant> <vector> <fmt/format.h> <tl/expected.hpp>)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/empty.cc CONTENT "")
  add_library(tailward_pch OBJECT ${CMAKE_BINARY_DIR}/empty.cc)
  target_link_libraries(tailward_pch PRIVATE tailward_flags fmt::fmt tl::expected)
  target_precompile_headers(tailward_pch PRIVATE ${pch})
  # For ccache.
  target_compile_options(tailward_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  if(TAILWARD_TESTS)
    add_library(tailward_test_pch OBJECT ${CMAKE_BINARY_DIR}/empty.cc)
    target_link_libraries(tailward_test_pch PRIVATE tailward_flags fmt::fmt tl::expected GTest::gmock GTest::gtest)
    target_compile_options(tailward_test_pch PRIVATE ${TAILWARD_TEST_OPTIONS})
    target_precompile_headers(tailward_test_pch PRIVATE ${pch} <gmock/gmock.h> <gtest/gtest.h>)
  endif()
endif()

# The folders that are the library; the others are parts of the program.
set(TAILWARD_INSTALLED base findings stats io hedge sync)
# What include/tailward/http_client.h hides: installed without headers, which would need Boost's.
set(TAILWARD_INSTALLED_HIDDEN http net client)

# tailward_component(NAME [ONE_THREAD] [ROOMS] [PUBLIC libs…] [PRIVATE libs…] [TEST libs…] [GENERATED sources…])
#   ONE_THREAD: neither its code nor its tests start a thread; ThreadSanitizer has nothing to see there.
#   ROOMS: its files stand in sub-folders, one level deep, as well.
#   One static library tailward_NAME (alias tailward::NAME) of every *.cc in this folder, and one test program
#   NAME_test of every *_test.cc, registered with CTest test by test. Files are found, not listed, so that
#   none on disk is left out.
function(tailward_component name)
  cmake_parse_arguments(ARG "ONE_THREAD;ROOMS" "" "PUBLIC;PRIVATE;TEST;GENERATED" ${ARGN})
  set(places "")
  if(ARG_ROOMS)
    set(places "*/")
  endif()
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${places}*.cc)
  file(GLOB headers CONFIGURE_DEPENDS *.h ${places}*.h)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc ${places}*_test.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  if(NOT sources AND NOT ARG_GENERATED)  # a static library needs one source, headers are not enough
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cc)
    file(CONFIGURE OUTPUT ${sources} CONTENT "")
  endif()
  add_library(tailward_${name} STATIC ${sources} ${ARG_GENERATED})
  add_library(tailward::${name} ALIAS tailward_${name})
  set_target_properties(tailward_${name} PROPERTIES EXPORT_NAME ${name})
  # A header's own source includes it first (a rule of tools/tidy), which proves that it compiles by itself. The
  # others are a set of their own, of which tidy-headers compiles each.
  set(alone ${headers})
  foreach(source ${sources})
    string(REGEX REPLACE "\\.cc$" ".h" header ${source})
    list(REMOVE_ITEM alone ${header})
  endforeach()
  list(REMOVE_ITEM headers ${alone})
  # As file sets, headers are installed by folder. An exported target must install its public ones, so the hidden
  # libraries have none.
  if(name IN_LIST TAILWARD_INSTALLED_HIDDEN)
    set(shown tailward_${name}_headers)
    add_library(${shown} INTERFACE)
    target_link_libraries(${shown} INTERFACE tailward_${name})
    set(scope INTERFACE)
  else()
    set(shown tailward_${name})
    set(scope PUBLIC)
  endif()
  target_sources(${shown} ${scope}
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers}
    FILE_SET alone TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${alone})
  set_target_properties(${shown} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY alone)
  target_include_directories(tailward_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tailward_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:tailward_flags>)
  target_compile_features(tailward_${name} PUBLIC cxx_std_20)
  if(TAILWARD_PCH)
    target_precompile_headers(tailward_${name} REUSE_FROM tailward_pch)
  endif()
  if(name IN_LIST TAILWARD_INSTALLED)
    install(TARGETS tailward_${name} EXPORT tailward
            FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tailward
            FILE_SET alone DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tailward)
  elseif(name IN_LIST TAILWARD_INSTALLED_HIDDEN)
    install(TARGETS tailward_${name} EXPORT tailward)
  endif()
  if(name IN_LIST TAILWARD_INSTALLED OR name IN_LIST TAILWARD_INSTALLED_HIDDEN)
    set_property(GLOBAL APPEND PROPERTY tailward_libraries tailward_${name})
  endif()
  if(TAILWARD_TESTS AND tests AND NOT (ARG_ONE_THREAD AND TAILWARD_SANITIZE MATCHES "thread"))
    add_executable(${name}_test ${tests})
    target_compile_options(${name}_test PRIVATE ${TAILWARD_TEST_OPTIONS})
    target_link_libraries(${name}_test PRIVATE tailward::${name} ${ARG_TEST} tailward_flags
                          GTest::gmock GTest::gtest_main)
    if(TAILWARD_PCH)
      # With the definitions that the headers were compiled with, or the compiler refuses them.
      target_link_libraries(${name}_test PRIVATE fmt::fmt tl::expected)
      target_precompile_headers(${name}_test REUSE_FROM tailward_test_pch)
    endif()
    # In the folder of the compilation: with ccache's base folder, __FILE__ is relative to it, and tests find their
    # recorded files by that.
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 120
                         WORKING_DIRECTORY ${CMAKE_BINARY_DIR} PROPERTIES TIMEOUT 300)
  endif()
endfunction()
