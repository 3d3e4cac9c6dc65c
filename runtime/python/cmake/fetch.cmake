# Unpacks some files of a package on PyPI: those that match PATTERNS, of the wheel of PACKAGE for PLATFORM, into OUTPUT.
file(REMOVE_RECURSE ${OUTPUT})
execute_process(COMMAND ${PYTHON} -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12
                        --platform ${PLATFORM} --dest ${OUTPUT} ${PACKAGE} COMMAND_ERROR_IS_FATAL ANY)
file(GLOB wheel ${OUTPUT}/*.whl)
file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${OUTPUT} PATTERNS ${PATTERNS})
file(REMOVE ${wheel})
