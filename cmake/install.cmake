# `cmake --install`: the program, its man page and shell completions, nothing else: couplet is one file.
include(GNUInstallDirs)
if(TARGET couplet)
  install(TARGETS couplet RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(FILES docs/couplet.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
  install(FILES docs/completions/couplet.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
          RENAME couplet)
  install(FILES docs/completions/_couplet DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES docs/completions/couplet.fish DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
