# find_package(tollbar): tollbar::tollbar and tollbar::redis, of the kind that the triplet says.
get_filename_component(_tollbar_prefix "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
foreach(_tollbar_name tollbar redis)
    if(NOT TARGET tollbar::${_tollbar_name})
        string(REPLACE redis tollbar-redis _tollbar_library ${_tollbar_name})
        file(GLOB _tollbar_file "${_tollbar_prefix}/lib/lib${_tollbar_library}.a" "${_tollbar_prefix}/lib/lib${_tollbar_library}.so")
        add_library(tollbar::${_tollbar_name} UNKNOWN IMPORTED)
        set_target_properties(tollbar::${_tollbar_name} PROPERTIES
            IMPORTED_LOCATION "${_tollbar_file}" INTERFACE_INCLUDE_DIRECTORIES "${_tollbar_prefix}/include")
    endif()
endforeach()
set_target_properties(tollbar::redis PROPERTIES INTERFACE_LINK_LIBRARIES "tollbar::tollbar;-pthread")
