# At installation: writes what the command MANUAL_COMMAND says of itself into MANUAL_FOLDER and installs it: manual pages, and
# completions for the shells, where each looks for them.
find_program(gzip gzip)

# said(FILE WORDS...): `cortado help WORDS` goes into the file.
function(said file)
  execute_process(COMMAND ${MANUAL_COMMAND} help ${ARGN} OUTPUT_FILE ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${MANUAL_FOLDER})
file(MAKE_DIRECTORY ${MANUAL_FOLDER}/man1)
execute_process(COMMAND ${MANUAL_COMMAND} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE "^.*\nSubcommands:\n" "" commands "${help}")
string(REGEX REPLACE "\n\n.*$" "" commands "${commands}")
string(REGEX MATCHALL "(^|\n)  [a-z_]+" commands "${commands}")
said(${MANUAL_FOLDER}/man1/cortado.1 --man)
foreach(command ${commands})
  string(STRIP "${command}" command)
  said(${MANUAL_FOLDER}/man1/cortado-${command}.1 --man ${command})
endforeach()
if(gzip)
  file(GLOB pages ${MANUAL_FOLDER}/man1/*.1)
  execute_process(COMMAND ${gzip} -9nf ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()
foreach(shell bash zsh fish)
  said(${MANUAL_FOLDER}/${shell} --completion ${shell})
endforeach()

set(share ${CMAKE_INSTALL_PREFIX}/share)
file(INSTALL ${MANUAL_FOLDER}/man1 DESTINATION ${share}/man)
file(INSTALL ${MANUAL_FOLDER}/bash DESTINATION ${share}/bash-completion/completions RENAME cortado)
file(INSTALL ${MANUAL_FOLDER}/zsh DESTINATION ${share}/zsh/vendor-completions RENAME _cortado)
file(INSTALL ${MANUAL_FOLDER}/fish DESTINATION ${share}/fish/vendor_completions.d RENAME cortado.fish)
