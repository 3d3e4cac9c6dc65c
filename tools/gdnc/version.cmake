# Writes OUTPUT from Version.cpp.in: cmake -DSOURCE=... -DVERSION=... -DOUTPUT=... -P version.cmake
# Run at every build, and the file is written only when it changes.
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix HEAD
  OUTPUT_VARIABLE answer RESULT_VARIABLE status ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
set(COMMIT "")
set(MODIFIED false)
# An empty first line: SOURCE is the root of the checkout, not a folder in somebody else's.
if(status EQUAL 0 AND answer MATCHES "^\n([0-9a-f]+)$")
  set(COMMIT ${CMAKE_MATCH_1})
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE changes)
  if(changes)
    set(MODIFIED true)
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/Version.cpp.in ${OUTPUT} @ONLY)
