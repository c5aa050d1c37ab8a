# find_package(einsum) gives the target einsum::einsum: the headers, libm, and threads.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
if(NOT TARGET einsum::einsum)
  get_filename_component(einsum_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(einsum::einsum INTERFACE IMPORTED)
  set_target_properties(einsum::einsum PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${einsum_prefix}/include/einsum"
    INTERFACE_LINK_LIBRARIES "$<$<BOOL:${UNIX}>:m>;Threads::Threads")
  unset(einsum_prefix)
endif()
