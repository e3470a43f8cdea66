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
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libdebuginfod1")
include(CPack)
