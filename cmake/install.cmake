install(TARGETS pawl EXPORT pawl-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET pawl_program)
    install(TARGETS pawl_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/pawl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT pawl-targets NAMESPACE pawl:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
configure_package_config_file(cmake/pawl-config.cmake.in ${PROJECT_BINARY_DIR}/pawl-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pawl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pawl-config.cmake ${PROJECT_BINARY_DIR}/pawl-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/pawl)
configure_file(cmake/pawl.pc.in ${PROJECT_BINARY_DIR}/pawl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pawl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
