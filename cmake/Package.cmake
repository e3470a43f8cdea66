# cmake --install, and a .deb by `cpack -G DEB`.
install(TARGETS stackreel RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(NOT CMAKE_CROSSCOMPILING)
  set(documents ${CMAKE_BINARY_DIR}/documents)
  add_custom_command(
    OUTPUT ${documents}/man1/stackreel.1
    COMMAND ${PROJECT_SOURCE_DIR}/tools/make_documents.sh $<TARGET_FILE:stackreel> ${documents}
    DEPENDS stackreel ${PROJECT_SOURCE_DIR}/tools/make_documents.sh
    COMMENT "Writing man pages and completion scripts")
  add_custom_target(documents ALL DEPENDS ${documents}/man1/stackreel.1)
  install(DIRECTORY ${documents}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${documents}/bash/stackreel
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${documents}/zsh/_stackreel
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${documents}/fish/stackreel.fish
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_PACKAGE_NAME stackreel)
set(CPACK_PACKAGE_VENDOR "The Stackreel authors")
set(CPACK_PACKAGE_CONTACT "The Stackreel authors <stackreel@stackreel.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
"Records a program, a process or a machine, unwinds with DWARF call-frame
information while it records, and writes a perf.data that perf reads too.
Shows recordings as text, JSON, folded stacks and flame graphs, and makes
them anonymous, so that they can be given away.
.
Traces the calls of chosen functions, also of programs that run already, by
patching their code; reads and writes uftrace's recordings.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/DebianPolicy.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# A revision, as of every package whose project is not Debian's own.
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Loaded when it is asked for: DEBUGINFOD_URLS.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libdebuginfod1")
include(CPack)
