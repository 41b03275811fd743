import CLLVS

// MARK: The `_init` functions, for callers who cannot see macros

@_cdecl("llvs_control_init") @implementation
public func llvs_control_init(_ control: UnsafeMutablePointer<llvs_control>!, _ struct_size: Int) -> llvs_status { initialise(control, struct_size) }

@_cdecl("llvs_store_options_init") @implementation
public func llvs_store_options_init(_ options: UnsafeMutablePointer<llvs_store_options>!, _ struct_size: Int) -> llvs_status { initialise(options, struct_size, earlierSizes: earlierSizesOfStoreOptions) }

@_cdecl("llvs_statistics_init") @implementation
public func llvs_statistics_init(_ statistics: UnsafeMutablePointer<llvs_statistics>!, _ struct_size: Int) -> llvs_status { initialise(statistics, struct_size) }

@_cdecl("llvs_compaction_report_init") @implementation
public func llvs_compaction_report_init(_ report: UnsafeMutablePointer<llvs_compaction_report>!, _ struct_size: Int) -> llvs_status { initialise(report, struct_size) }

@_cdecl("llvs_version_options_init") @implementation
public func llvs_version_options_init(_ options: UnsafeMutablePointer<llvs_version_options>!, _ struct_size: Int) -> llvs_status { initialise(options, struct_size, earlierSizes: earlierSizesOfVersionOptions) }

@_cdecl("llvs_range_init") @implementation
public func llvs_range_init(_ range: UnsafeMutablePointer<llvs_range>!, _ struct_size: Int) -> llvs_status { initialise(range, struct_size) }

@_cdecl("llvs_merge_options_init") @implementation
public func llvs_merge_options_init(_ options: UnsafeMutablePointer<llvs_merge_options>!, _ struct_size: Int) -> llvs_status { initialise(options, struct_size) }

@_cdecl("llvs_exchange_options_init") @implementation
public func llvs_exchange_options_init(_ options: UnsafeMutablePointer<llvs_exchange_options>!, _ struct_size: Int) -> llvs_status { initialise(options, struct_size) }

@_cdecl("llvs_coordinator_options_init") @implementation
public func llvs_coordinator_options_init(_ options: UnsafeMutablePointer<llvs_coordinator_options>!, _ struct_size: Int) -> llvs_status { initialise(options, struct_size, earlierSizes: earlierSizesOfCoordinatorOptions) }

@_cdecl("llvs_storage_callbacks_init") @implementation
public func llvs_storage_callbacks_init(_ callbacks: UnsafeMutablePointer<llvs_storage_callbacks>!, _ struct_size: Int) -> llvs_status { initialise(callbacks, struct_size) }

@_cdecl("llvs_transport_callbacks_init") @implementation
public func llvs_transport_callbacks_init(_ callbacks: UnsafeMutablePointer<llvs_transport_callbacks>!, _ struct_size: Int) -> llvs_status { initialise(callbacks, struct_size, earlierSizes: earlierSizesOfTransportCallbacks) }
