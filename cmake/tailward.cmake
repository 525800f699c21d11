# How every folder of src/ becomes one library and, where it has *_test.cc files, one test program.

find_package(Threads REQUIRED)
find_package(tl-expected REQUIRED)
find_package(fmt REQUIRED)
if(TAILWARD_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# Flags of our own code. They travel to our targets only, never to those who embed the library.
add_library(tailward_flags INTERFACE)
target_compile_features(tailward_flags INTERFACE cxx_std_20)
target_compile_options(tailward_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Woverloaded-virtual
  -fno-omit-frame-pointer)
if(TAILWARD_WERROR)
  target_compile_options(tailward_flags INTERFACE -Werror)
endif()
if(TAILWARD_SANITIZE)
  target_compile_options(tailward_flags INTERFACE -fsanitize=${TAILWARD_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(tailward_flags INTERFACE -fsanitize=${TAILWARD_SANITIZE})
endif()

# tailward_component(NAME [PUBLIC libs…] [PRIVATE libs…] [TEST libs…] [GENERATED sources…])
#   One static library tailward_NAME (alias tailward::NAME) of every *.cc in this folder, and one test program
#   NAME_test of every *_test.cc, registered with CTest test by test. Files are found, not listed, so that
#   none on disk is left out.
function(tailward_component name)
  cmake_parse_arguments(ARG "" "" "PUBLIC;PRIVATE;TEST;GENERATED" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cc *.h)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(tailward_${name} STATIC ${sources} ${ARG_GENERATED})
  add_library(tailward::${name} ALIAS tailward_${name})
  set_target_properties(tailward_${name} PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME ${name})
  target_include_directories(tailward_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_link_libraries(tailward_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:tailward_flags>)
  target_compile_features(tailward_${name} PUBLIC cxx_std_20)
  if(TAILWARD_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE tailward::${name} ${ARG_TEST} tailward_flags
                          GTest::gmock GTest::gtest_main)
    gtest_discover_tests(${name}_test TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
  endif()
endfunction()
