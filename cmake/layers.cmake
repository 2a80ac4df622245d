# A layer is an OBJECT library whose include path holds the layers that it may see, and nothing else: an include that
# points up does not compile. The path is a folder of links, so that an include tells the layer: "os/file.h".
set(PAWL_LAYERS "" CACHE INTERNAL "")

# pawl_layer(<name> [SEES <layer>...] SOURCES <file>...)
function(pawl_layer name)
    cmake_parse_arguments(LAYER "" "" "SEES;SOURCES" ${ARGN})
    if(NOT LAYER_SOURCES)
        return() # nothing in it yet
    endif()
    set(view ${PROJECT_BINARY_DIR}/layers/${name})
    file(MAKE_DIRECTORY ${view})
    foreach(seen ${name} ${LAYER_SEES})
        file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/${seen} ${view}/${seen} SYMBOLIC)
    endforeach()
    add_library(pawl_${name} OBJECT ${LAYER_SOURCES})
    target_include_directories(pawl_${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${view})
    if(TARGET OpenSSL::Crypto AND name STREQUAL codec)
        target_include_directories(pawl_${name} PRIVATE ${OPENSSL_INCLUDE_DIR})
    endif()
    set(PAWL_LAYERS ${PAWL_LAYERS} pawl_${name} CACHE INTERNAL "")
endfunction()
