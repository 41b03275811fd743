import CLLVSShims

/// Lists the services of the modules below: what `RemoteService.linked` calls.
@_cdecl("llvs_shim_list_services")
package func listServices(_ list: UnsafeMutableRawPointer?) {
    guard let list else { return }
    Unmanaged<RemoteServiceList>.fromOpaque(list).takeUnretainedValue().services += RemoteService.servers + RemoteService.clouds
}
