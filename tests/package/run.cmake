# Installs the package into an empty prefix, moves that, and builds and runs the consumer against it: through CMake's package,
# and through pkg-config where that is found.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "expected success of: ${command}\ngot ${result}:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --component gdn --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix) # an install may be moved

run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/build -G ${GENERATOR} -DCMAKE_C_COMPILER=${COMPILER}
    "-DCMAKE_C_FLAGS=${FLAGS}" -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
message("${output}")

find_program(PKG_CONFIG NAMES pkg-config pkgconf)
if(PKG_CONFIG)
  set(ENV{PKG_CONFIG_PATH} ${WORK}/prefix/${LIBDIR}/pkgconfig)
  run(${PKG_CONFIG} --exact-version ${VERSION} gdn)
  run(${PKG_CONFIG} --cflags --libs gdn)
  separate_arguments(arguments UNIX_COMMAND "${FLAGS} ${CONSUMER}/main.c ${output} -Wl,-rpath,${WORK}/prefix/${LIBDIR}")
  run(${COMPILER} ${arguments} -o ${WORK}/from-pkg-config)
  run(${WORK}/from-pkg-config)
endif()
