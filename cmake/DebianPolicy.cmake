# Run by cpack between installing into a scratch root and packing that: what Debian's policy asks of
# a package beyond what `cmake --install` puts anywhere.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(root "${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX}")
set(doc "${root}/share/doc/${CPACK_PACKAGE_NAME}")

# Licences (12.5): the system has the text of ours. Of libraries that are in the program, as headers
# or linked statically, the notices must go where the program goes.
file(WRITE "${doc}/copyright"
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: ${CPACK_PACKAGE_NAME}

Files: *
Copyright: 2026 The Stackreel authors
License: Apache-2.0
 On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.
Comment:
 The program holds code of the libraries whose licences are in licenses/.
")
file(REMOVE "${doc}/LICENSE")
foreach(library IN ITEMS libcli11-dev libdeflate-dev libfmt-dev libiberty-dev liblzma-dev
                         libsodium-dev libxxhash-dev libzstd-dev nlohmann-json3-dev)
  file(READ "/usr/share/doc/${library}/copyright" notice)
  string(REGEX REPLACE "-dev$" "" name "${library}")
  file(WRITE "${doc}/licenses/${name}.txt" "${notice}")
endforeach()

# Changelogs (12.7), which are compressed as man pages are (12.1). The time is SOURCE_DATE_EPOCH's, if
# that is set.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(RENAME "${doc}/CHANGELOG.md" "${doc}/changelog")
file(WRITE "${doc}/changelog.Debian"
"${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * See changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(GLOB pages "${root}/share/man/man1/*.1")
execute_process(COMMAND gzip -9nf "${doc}/changelog" "${doc}/changelog.Debian" ${pages}
                COMMAND_ERROR_IS_FATAL ANY)
